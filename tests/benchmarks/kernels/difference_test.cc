#include "benchmarks/kernels/difference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trireme::kernels::bench {
namespace {

Tensors one(const std::string& name, float a, float b) {
  Tensors tensors;
  const auto values = tensors.add<float>(name, {2});
  values[0] = a;
  values[1] = b;
  return tensors;
}

TEST(DifferenceTest, IsRelativeToTheElementOrToItsTensor) {
  const Difference difference = compare(one("x", 0, 10.5F), one("x", 1, 10.0F));
  EXPECT_DOUBLE_EQ(difference.largest, 1 / std::sqrt(101.0 / 2));  // 0.5 of 10 is less
  EXPECT_EQ(difference.where, "x[0]");
  EXPECT_DOUBLE_EQ(compare(one("x", 0x1p-30F, 0x3p-30F), one("x", 0x1p-30F, 0x1p-30F)).largest, 2);
  EXPECT_TRUE(std::isinf(compare(one("x", 0, 1e-30F), one("x", 0, 0)).largest));
}

TEST(DifferenceTest, TensorsMayHaveTolerancesOfTheirOwn) {
  Tensors a = one("x", 1, 1), b = one("x", 1, 1.5F);
  a.add<float>("y", {1})[0] = 1;
  b.add<float>("y", {1})[0] = 1.06F;
  EXPECT_EQ(compare(a, b, {.usual = 0.1}).where, "x[1]");
  const Difference difference = compare(a, b, {.usual = 0.1, .of = {{"x", 1}}});
  EXPECT_EQ(difference.where, "y[0]");
  EXPECT_LT(difference.excess, 1);
}

TEST(DifferenceTest, NanEqualsNanAlone) {
  const float nan = std::nanf("");
  EXPECT_EQ(compare(one("x", nan, 1), one("x", nan, 1)).largest, 0);
  EXPECT_TRUE(std::isinf(compare(one("x", nan, 1), one("x", 1, 1)).largest));
}

TEST(DifferenceTest, OtherNamesAndShapesAreNotCompared) {
  EXPECT_FALSE(compare(one("x", 1, 1), one("y", 1, 1)).is_comparable);
  Tensors longer;
  longer.add<float>("x", {3});
  EXPECT_FALSE(compare(one("x", 1, 1), longer).is_comparable);
}

TEST(DifferenceTest, NothingIsNotCompared) {
  EXPECT_FALSE(compare(one("x", 1, 1), {}).is_comparable);
  Tensors empty;
  empty.add<float>("x", {0});
  EXPECT_FALSE(compare(empty, empty).is_comparable);
}

}  // namespace
}  // namespace trireme::kernels::bench
