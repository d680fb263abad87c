#pragma once

#include <bit>
#include <cstdint>

namespace trireme::kernels {

/// The upper half of an f32.
struct Bf16 {
  std::uint16_t bits;
};

/// IEEE binary16.
struct F16 {
  std::uint16_t bits;
};

// For loops over any element type: what needs no widening stays as it is.
constexpr float to_f32(float x) { return x; }
constexpr double to_f32(double x) { return x; }

constexpr float to_f32(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Exact. A subnormal is scaled as a whole number; infinities and NaN keep their upper bits.
constexpr float to_f32(F16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1FU;
  const std::uint32_t fraction = x.bits & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

/// To nearest, ties to even; beyond the range infinity; every NaN becomes 0x7FC0, as in torch.
constexpr Bf16 to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  return {static_cast<std::uint16_t>((x != x ? 0x7FC00000U : rounded) >> 16)};
}

/// The f32 that `to_bf16` leaves of it.
constexpr float rounded_to_bf16(float x) { return to_f32(to_bf16(x)); }

/// At random: down, or up where the 16 bits that are cut off and `random` carry over. The mean over
/// all `random` is x, so what is less than a unit is not lost over many roundings. NaN as above.
constexpr Bf16 to_bf16_at_random(float x, std::uint16_t random) {
  const std::uint32_t rounded = std::bit_cast<std::uint32_t>(x) + random;
  return {static_cast<std::uint16_t>((x != x ? 0x7FC00000U : rounded) >> 16)};
}

/// To nearest, ties to even; beyond the range infinity; every NaN becomes 0x7E00 with its sign.
constexpr F16 to_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto with_sign = [sign](std::uint32_t rest) {
    return F16{static_cast<std::uint16_t>(sign | rest)};
  };
  if (magnitude > 0x7F800000U) return with_sign(0x7E00);
  if (magnitude >= 0x477FF000U) return with_sign(0x7C00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the spacing is 2^-24: adding 1/2 puts it into the last bit of the f32.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return with_sign(std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U);
  }
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  return with_sign((magnitude - (112U << 23) + 0xFFFU + odd) >> 13);
}

}  // namespace trireme::kernels
