#include "trireme/kernels/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace trireme::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Every finite value of a 16-bit type, by its bits without the sign, ascending.
template <typename Half>
std::vector<float> magnitudes(std::uint16_t infinity) {
  std::vector<float> values;
  for (std::uint16_t bits = 0; bits < infinity; ++bits) values.push_back(to_f32(Half{bits}));
  return values;
}

/// Rounds by search among all values: nearest, ties to the even one.
std::uint16_t nearest(float x, const std::vector<float>& values, double limit) {
  const double magnitude = std::abs(static_cast<double>(x));
  if (magnitude >= limit) return static_cast<std::uint16_t>(values.size());
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return static_cast<std::uint16_t>(values.size() - 1);
  const auto index = static_cast<std::uint16_t>(above - values.begin());
  if (index == 0 || *above == magnitude) return index;
  const double up = *above - magnitude, down = magnitude - values[index - 1];
  if (up != down) return up < down ? index : index - 1;
  return index % 2 == 0 ? index : index - 1;
}

TEST(Half, KnownValues) {
  EXPECT_EQ(to_f32(F16{0x3C00}), 1.0F);
  EXPECT_EQ(to_f32(F16{0xC000}), -2.0F);
  EXPECT_EQ(to_f32(F16{0x7BFF}), 65504.0F);
  EXPECT_EQ(to_f32(F16{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_f32(F16{0x7C00}), kInf);
  EXPECT_TRUE(std::isnan(to_f32(F16{0x7E00})));
  EXPECT_TRUE(std::signbit(to_f32(F16{0x8000})));
  EXPECT_EQ(to_f32(Bf16{0x3F80}), 1.0F);
  EXPECT_EQ(to_bf16(std::nanf("")).bits, 0x7FC0);
  EXPECT_EQ(to_f16(std::nanf("")).bits, 0x7E00);
  EXPECT_EQ(to_f16(65519.996F).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_f16(-kInf).bits, 0xFC00);
  EXPECT_EQ(to_bf16(3.4e38F).bits, 0x7F80);
}

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const F16 f16{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(std::isnan(to_f32(f16)) || to_f16(to_f32(f16)).bits == bits) << bits;
    const Bf16 bf16{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(std::isnan(to_f32(bf16)) || to_bf16(to_f32(bf16)).bits == bits) << bits;
  }
}

/// Numbers of all sizes and halfway cases between neighbours of `values`.
std::vector<float> inputs_around(const std::vector<float>& values, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> inputs;
  for (int i = 0; i < 100'000; ++i) {
    inputs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    inputs.push_back(static_cast<float>(random()) * 0x1p-32F *
                     std::ldexp(1.0F, static_cast<int>(random() % 42) - 26));
  }
  for (std::size_t i = 0; i + 1 < values.size(); i += 7) {
    const float middle = (values[i] + values[i + 1]) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kInf)}) {
      inputs.push_back(x);
    }
  }
  return inputs;
}

TEST(Half, RoundsToNearestTiesToEven) {
  const std::vector<float> f16 = magnitudes<F16>(0x7C00);
  const std::vector<float> bf16 = magnitudes<Bf16>(0x7F80);
  for (const unsigned seed : {3U, 4U}) {
    for (const float x : inputs_around(f16, seed)) {
      if (std::isnan(x)) continue;
      const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
      ASSERT_EQ(to_f16(x).bits, sign | nearest(x, f16, 65520.0)) << "seed " << seed << ", " << x;
      ASSERT_EQ(to_bf16(x).bits, sign | nearest(x, bf16, 0x1.FFp127))
          << "seed " << seed << ", " << x;
    }
  }
}

}  // namespace
}  // namespace trireme::kernels
