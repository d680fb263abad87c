#include "trireme/kernels/norm/norm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/reference/norm.h"

namespace trireme::kernels {
namespace {

template <typename T>
void expect_reference_bits() {
  for (std::int64_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 1000, 16383, 16384}) {
    const std::vector<T> x = random_numbers<T>(n + 3, static_cast<unsigned>(n));
    for (const int offset : {0, 1, 3}) {  // unaligned starts as well
      EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of_squares(x.data() + offset, n)),
                std::bit_cast<std::uint64_t>(reference::sum_of_squares(x.data() + offset, n)))
          << n << " elements at " << offset;
    }
  }
}

TEST(Norm, ABlockHasTheBitsOfTheReference) {
  expect_reference_bits<float>();
  expect_reference_bits<double>();
}

TEST(Norm, ElementIGoesToSimdLaneIMod16) {
  // 2^53 + 1 is lost where both are in one lane, and kept where the tree adds two ones first.
  std::vector<double> x(33, 0.0);
  x[0] = 0x1p27;  // square 2^54, spacing 4
  x[16] = x[32] = 1;
  EXPECT_EQ(sum_of_squares(x.data(), 33), 0x1p54);
  std::vector<double> y(16, 0.0);
  y[0] = 0x1p27;
  y[2] = y[3] = std::sqrt(2.0);  // meet in the first round, and reach 4 together
  EXPECT_EQ(sum_of_squares(y.data(), 16), 0x1p54 + 4);
}

TEST(Norm, HalvesAreWidenedExactly) {
  const std::vector<float> x = random_numbers<float>(100, 9);
  std::vector<Bf16> b(100);
  std::vector<F16> h(100);
  std::vector<float> b_wide(100), h_wide(100);
  for (int i = 0; i < 100; ++i) {
    b[i] = to_bf16(x[i]);
    h[i] = to_f16(x[i]);
    b_wide[i] = to_f32(b[i]);
    h_wide[i] = to_f32(h[i]);
  }
  EXPECT_EQ(sum_of_squares(b.data(), 100), sum_of_squares(b_wide.data(), 100));
  EXPECT_EQ(sum_of_squares(h.data(), 100), sum_of_squares(h_wide.data(), 100));
}

TEST(Norm, AParameterFoldsItsBlocksFromTheLeft) {
  for (std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, kNormBlock, kNormBlock + 1, 3 * kNormBlock + 77}) {
    const std::vector<float> x = random_numbers<float>(n, 11);
    double expected = 0;
    for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
      expected += reference::sum_of_squares(x.data() + begin, std::min(kNormBlock, n - begin));
    }
    EXPECT_EQ(square_norm(x.data(), n), expected) << n;
  }
}

TEST(Norm, SpecialNumbersSpread) {
  std::vector<float> x(20, 1);
  x[7] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(square_norm(x.data(), 20), std::numeric_limits<double>::infinity());
  x[3] = std::nanf("");
  EXPECT_TRUE(std::isnan(square_norm(x.data(), 20)));
  x.assign(20, 1e30F);  // its square exceeds f32
  EXPECT_NEAR(square_norm(x.data(), 20) / 20e60, 1, 1e-6);
}

}  // namespace
}  // namespace trireme::kernels
