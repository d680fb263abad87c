#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme {

/// Element type of a tensor. File forms and messages use the name in `to_text`.
enum class Dtype : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kC64,   ///< Complex of two f32.
  kC128,  ///< Complex of two f64.
};

namespace internal {
struct DtypeFacts {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<DtypeFacts, 12> kDtypeFacts = {{{"f64", 8},
                                                            {"f32", 4},
                                                            {"f16", 2},
                                                            {"bf16", 2},
                                                            {"i64", 8},
                                                            {"i32", 4},
                                                            {"i16", 2},
                                                            {"i8", 1},
                                                            {"u8", 1},
                                                            {"bool", 1},
                                                            {"c64", 8},
                                                            {"c128", 16}}};
}  // namespace internal

constexpr std::string_view to_text(Dtype dtype) {
  return internal::kDtypeFacts[static_cast<std::size_t>(dtype)].name;
}

constexpr std::size_t size_bytes(Dtype dtype) {
  return internal::kDtypeFacts[static_cast<std::size_t>(dtype)].bytes;
}

constexpr bool is_half(Dtype dtype) { return dtype == Dtype::kF16 || dtype == Dtype::kBf16; }

/// A floating-point number that is not complex: sums depend on their order.
constexpr bool is_real(Dtype dtype) {
  return is_half(dtype) || dtype == Dtype::kF32 || dtype == Dtype::kF64;
}

/// Inverse of `to_text`; nothing where `text` names no dtype.
constexpr std::optional<Dtype> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < internal::kDtypeFacts.size(); ++i) {
    if (internal::kDtypeFacts[i].name == text) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

}  // namespace trireme
