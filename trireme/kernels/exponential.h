#pragma once

#include <bit>
#include <cstdint>

#include "trireme/kernels/simd.h"

namespace trireme::kernels {

/// e^x, for loops that the compiler makes vectors of: no branch, no table, no library call, the
/// same bits whatever the width. Within 1 ulp of the exact value for -86.6 <= x <= 88.7; 0 below
/// (the exact value is under 2^-124), infinity above 88.73, NaN of NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, in two parts of ln 2 so that r is exact to 2^-33; e^r by a
/// polynomial of degree 6 (relative error 2^-28, by Remez's exchange), times 2^(n-1) times 2, since
/// 2^128 is none.
TRIREME_INLINE_LOOP float exponential(float x) {
  constexpr float kLowest = -86.6F;
  constexpr float kHighest = 88.73F;
  constexpr float kRounder = 0x1.8p23F;  // added, it leaves a whole number in the last bits
  constexpr float kLn2High = 0x1.62e400p-1F;
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  const float above = x < kLowest ? kLowest : x;
  const float inside = above > kHighest ? kHighest : above;
  const float shifted = fma(inside, 0x1.715476p0F, kRounder);
  const float n = shifted - kRounder;
  const float r = fma(-n, kLn2Low, fma(-n, kLn2High, inside));
  float p = 0x1.6a23d0p-10F;
  p = fma(p, r, 0x1.123a20p-7F);
  p = fma(p, r, 0x1.5558f2p-5F);
  p = fma(p, r, 0x1.555492p-3F);
  p = fma(p, r, 0x1.fffffcp-2F);
  p = fma(p, r, 1.0F);
  p = fma(p, r, 1.0F);
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounder) + 126;
  const float scale = std::bit_cast<float>(exponent << 23);
  const float y = p * scale * 2.0F;
  return x < kLowest ? 0.0F : y;
}

}  // namespace trireme::kernels
