#include "trireme/kernels/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "trireme/kernels/lanes.h"

namespace trireme::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Units in the last place between y and the exact e^x.
double error_ulps(float x, float y) {
  const double exact = std::exp(static_cast<double>(x));
  const float rounded = static_cast<float>(exact);
  const double ulp = std::nextafter(rounded, kInfinity) - static_cast<double>(rounded);
  return std::abs(static_cast<double>(y) - exact) / ulp;
}

TEST(ExponentialTest, IsWithinOneUlp) {
  double worst = 0;
  constexpr int kPoints = 10'000'000;
  for (int i = 0; i < kPoints; ++i) {
    const auto point = static_cast<float>(-86.6 + (88.7 + 86.6) * i / kPoints);
    worst = std::max(worst, error_ulps(point, exponential(point)));
  }
  EXPECT_LT(worst, 1.0);
}

TEST(ExponentialTest, DecayIsTheSameUpTo80) {
  for (int i = 0; i < 50'000; ++i) {
    const float x = -100 + 0.0036F * static_cast<float>(i);
    EXPECT_EQ(decay(x), exponential(x)) << x;
  }
  EXPECT_EQ(decay(-kInfinity), 0.0F);
  EXPECT_TRUE(std::isnan(decay(std::nanf(""))));
}

TEST(ExponentialTest, KnowsTheEnds) {
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-86.7F), 0.0F);
  EXPECT_EQ(exponential(-kInfinity), 0.0F);
  EXPECT_LT(exponential(88.72F), kInfinity);
  EXPECT_EQ(exponential(88.74F), kInfinity);
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))));
  EXPECT_TRUE(std::isnan(exponential(-std::nanf(""))));
}

TEST(ExponentialTest, HasTheSameBitsInLanes) {
  constexpr int kWidth = portable::kLanes;
  const auto expect_same = [](const float (&x)[kWidth]) {
    float y[kWidth];
    portable::store(portable::exponential(portable::load(x)), y);
    for (int i = 0; i < kWidth; ++i) {
      const float one = exponential(x[i]);
      if (std::isnan(one)) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(one)) << x[i];
      }
    }
  };
  expect_same({0.0F, -0.0F, -86.6F, -86.7F, 88.72F, 88.73F, 88.74F, kInfinity, -kInfinity,
               std::nanf(""), 1e-30F, -1e-30F, 1e30F, -1e30F, 1.0F, -1.0F});
  float x[kWidth];
  for (int step = 0; step < 178'000; ++step) {
    const float first = -88 + 1e-3F * static_cast<float>(step);
    for (int i = 0; i < kWidth; ++i) x[i] = first + 1e-4F * static_cast<float>(i);
    expect_same(x);
  }
}

}  // namespace
}  // namespace trireme::kernels
