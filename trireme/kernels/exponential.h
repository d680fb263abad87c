#pragma once

#include <bit>
#include <cstdint>

#include "trireme/kernels/simd.h"

namespace trireme::kernels {

namespace internal {

/// n and e^r of x = n ln 2 + r with |r| <= ln 2 / 2, in two parts of ln 2 so that r is exact to
/// 2^-33; e^r by a polynomial of degree 6 (relative error 2^-28, by Remez's exchange).
struct PowerOfE {
  std::uint32_t n;  ///< Of two's complement.
  float rest;
};

inline constexpr float kLowestExponent = -86.6F;

TRIREME_INLINE_LOOP PowerOfE power_of_e(float x) {
  constexpr float kRounder = 0x1.8p23F;  // added, it leaves a whole number in the last bits
  constexpr float kLn2High = 0x1.62e400p-1F;
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  const float shifted = fma(x, 0x1.715476p0F, kRounder);
  const float n = shifted - kRounder;
  const float r = fma(-n, kLn2Low, fma(-n, kLn2High, x));
  float p = 0x1.6a23d0p-10F;
  p = fma(p, r, 0x1.123a20p-7F);
  p = fma(p, r, 0x1.5558f2p-5F);
  p = fma(p, r, 0x1.555492p-3F);
  p = fma(p, r, 0x1.fffffcp-2F);
  p = fma(p, r, 1.0F);
  p = fma(p, r, 1.0F);
  return {std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder), p};
}

TRIREME_INLINE_LOOP float power_of_two(std::uint32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

}  // namespace internal

/// e^x, for loops that the compiler makes vectors of: no branch, no table, no library call, the
/// same bits whatever the width. Within 1 ulp of the exact value for -86.6 <= x <= 88.7; 0 below
/// (the exact value is under 2^-124), infinity above 88.73, NaN of NaN.
///
/// e^r 2^(n-1) 2, since 2^128 is none.
TRIREME_INLINE_LOOP float exponential(float x) {
  constexpr float kHighest = 88.73F;
  const float above = x < internal::kLowestExponent ? internal::kLowestExponent : x;
  const auto power = internal::power_of_e(above > kHighest ? kHighest : above);
  const float y = power.rest * internal::power_of_two(power.n - 1) * 2.0F;
  return x < internal::kLowestExponent ? 0.0F : y;
}

/// `exponential` of x <= 80, the same bits with fewer instructions.
TRIREME_INLINE_LOOP float decay(float x) {
  const auto power =
      internal::power_of_e(x < internal::kLowestExponent ? internal::kLowestExponent : x);
  return x < internal::kLowestExponent ? 0.0F : power.rest * internal::power_of_two(power.n);
}

}  // namespace trireme::kernels
