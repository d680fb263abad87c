#include "trireme/kernels/reduce/fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tests/kernels/random_numbers.h"

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
