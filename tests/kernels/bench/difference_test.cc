#include "trireme/kernels/bench/difference.h"

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

TEST(DifferenceTest, IsRelativeAboveOne) {
  const Difference difference = compare(one("x", 0.5F, 10.5F), one("x", 0.25F, 10.0F));
  EXPECT_EQ(difference.largest, 0.25);
  EXPECT_EQ(difference.where, "x[0]");
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
