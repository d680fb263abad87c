#include "trireme/kernels/reduce/fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

constexpr std::int64_t kLengths[] = {0, 1, 3, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 4099};

template <typename Source, typename Accumulator>
void expect_fold() {
  for (const std::int64_t n : kLengths) {
    const std::vector<Source> a = random_numbers<Source>(n, 1), b = random_numbers<Source>(n, 2);
    std::vector<Accumulator> sum(n + 1, Accumulator{-7});
    fold(FoldStep::kFirst, a.data(), sum.data(), n);
    fold(FoldStep::kNext, b.data(), sum.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      const Accumulator expected =
          static_cast<Accumulator>(to_f32(a[i])) + static_cast<Accumulator>(to_f32(b[i]));
      ASSERT_EQ(sum[i], expected) << i << " of " << n;
    }
    EXPECT_EQ(sum[n], Accumulator{-7}) << "wrote past the end of " << n;
  }
}

TEST(Fold, CopiesThenAdds) {
  expect_fold<float, float>();
  expect_fold<double, double>();
  expect_fold<float, double>();
  expect_fold<Bf16, float>();
  expect_fold<F16, float>();
}

TEST(Fold, TheFirstKeepsMinusZero) {
  const float minus_zero = -0.0F;
  float sum = 5;
  fold(FoldStep::kFirst, &minus_zero, &sum, 1);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(sum), 0x80000000U);
  float zero = 0;
  fold(FoldStep::kNext, &minus_zero, &zero, 1);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(zero), 0U);
}

TEST(Fold, IsALeftFoldInF32) {
  // In another order, or in f64, the ones would survive.
  const float terms[] = {1, 0x1p25F, -0x1p25F, 1};
  float sum = 0;
  FoldStep step = FoldStep::kFirst;
  for (const float& term : terms) {
    fold(step, &term, &sum, 1);
    step = FoldStep::kNext;
  }
  EXPECT_EQ(sum, 1);
}

TEST(AddInto, AddsElementByElement) {
  for (const std::int64_t n : kLengths) {
    std::vector<double> sum = random_numbers<double>(n, 3);
    const std::vector<double> before = sum, x = random_numbers<double>(n, 4);
    add_into(sum.data(), x.data(), n);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], before[i] + x[i]);
  }
}

/// Numbers whose roundings are ties, carry into the exponent, overflow, or are none.
std::vector<float> edges() {
  std::vector<float> x;
  for (const std::uint32_t upper : {0x0000U, 0x0001U, 0x007FU, 0x0080U, 0x3F80U, 0x3F81U, 0x3FFFU,
                                    0x7F7EU, 0x7F7FU, 0x7F80U, 0x7F81U, 0x7FC0U}) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        x.push_back(std::bit_cast<float>(sign | upper << 16 | lower));
      }
    }
  }
  return x;
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// As torch rounds: to nearest, ties to even; every NaN is one.
float plainly_rounded(float x) {
  if (std::isnan(x)) return std::bit_cast<float>(0x7FC00000U);
  if (std::isinf(x)) return x;
  const std::uint32_t below = bits(x) & 0xFFFF0000U, above = below + 0x10000U;
  const std::uint32_t rest = bits(x) & 0xFFFFU;
  const bool is_up = rest > 0x8000U || (rest == 0x8000U && (below >> 16) % 2 == 1);
  return std::bit_cast<float>(is_up ? above : below);
}

class Rounded : public testing::TestWithParam<Isa> {
  IsaLimit limit_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Isas, Rounded, testing::Values(Isa::kPortable, Isa::kAvx2, Isa::kAvx512));

TEST_P(Rounded, KeepsNanAndInfinityAndOverflowsToIt) {
  const std::vector<float> x = edges();
  std::vector<float> through = x;
  round_through_bf16(through.data(), std::ssize(x));
  std::vector<Bf16> narrow(x.size());
  round_to(x.data(), narrow.data(), std::ssize(x));
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(bits(through[i]), bits(plainly_rounded(x[i]))) << std::hex << bits(x[i]);
    EXPECT_EQ(bits(to_f32(narrow[i])), bits(through[i])) << std::hex << bits(x[i]);
    EXPECT_EQ(std::isnan(through[i]), std::isnan(x[i]));
  }
  const float beyond = 3.4e38F;
  EXPECT_TRUE(std::isinf(plainly_rounded(beyond)));
}

TEST_P(Rounded, AddsWhatBothAreRoundedTo) {
  for (const std::int64_t n : kLengths) {
    const std::vector<float> a = random_numbers<float>(n, 6), b = random_numbers<float>(n, 7);
    std::vector<float> sum = a, through = a;
    sum.push_back(-7);
    add_rounded(sum.data(), b.data(), n);
    round_through_bf16(through.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(bits(sum[i]), bits(plainly_rounded(a[i]) + plainly_rounded(b[i]))) << i << "/" << n;
      ASSERT_EQ(bits(through[i]), bits(plainly_rounded(a[i]))) << i << "/" << n;
    }
    EXPECT_EQ(sum[n], -7) << "wrote past the end of " << n;
  }
  const std::vector<float> x = edges();
  std::vector<float> sum(x.rbegin(), x.rend());
  add_rounded(sum.data(), x.data(), std::ssize(x));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float expected = plainly_rounded(x[x.size() - 1 - i]) + plainly_rounded(x[i]);
    EXPECT_TRUE(bits(sum[i]) == bits(expected) || (std::isnan(sum[i]) && std::isnan(expected)));
  }
}

TEST(RoundTo, RoundsOnceAtTheEnd) {
  // Three thirds of a bf16 step: rounded after each addition they would vanish.
  const float third = 0x1p-9F;
  std::vector<float> sum = {1};
  for (int i = 0; i < 3; ++i) add_into(sum.data(), &third, 1);
  Bf16 rounded{};
  round_to(sum.data(), &rounded, 1);
  EXPECT_EQ(to_f32(rounded), 1 + 0x1p-7F);
  const std::vector<float> x = random_numbers<float>(37, 5);
  std::vector<F16> y(37);
  round_to(x.data(), y.data(), 37);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(y[i].bits, to_f16(x[i]).bits);
}

}  // namespace
}  // namespace trireme::kernels
