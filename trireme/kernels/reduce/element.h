#pragma once

// What `combine` does with one element, for each type and operation. Processors and GPUs compile
// the same functions: nvcc takes what is constexpr.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "trireme/kernels/half.h"
#include "trireme/kernels/reduce/combine.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {

/// One byte, 0 or not.
struct Bool {
  std::uint8_t bits;
};

TRIREME_INLINE_LOOP constexpr float widened(float x) { return x; }
TRIREME_INLINE_LOOP constexpr double widened(double x) { return x; }
TRIREME_INLINE_LOOP constexpr float widened(F16 x) { return to_f32(x); }
TRIREME_INLINE_LOOP constexpr float widened(Bf16 x) { return to_f32(x); }
TRIREME_INLINE_LOOP constexpr std::int64_t widened(std::int64_t x) { return x; }
TRIREME_INLINE_LOOP constexpr std::int32_t widened(std::int32_t x) { return x; }
TRIREME_INLINE_LOOP constexpr std::int16_t widened(std::int16_t x) { return x; }
TRIREME_INLINE_LOOP constexpr std::int8_t widened(std::int8_t x) { return x; }
TRIREME_INLINE_LOOP constexpr std::uint8_t widened(std::uint8_t x) { return x; }
TRIREME_INLINE_LOOP constexpr std::uint8_t widened(Bool x) { return x.bits != 0 ? 1 : 0; }

/// The type in which elements are combined.
template <typename Element>
using Wide = decltype(widened(Element{}));

template <typename Element>
TRIREME_INLINE_LOOP constexpr Element narrowed(Wide<Element> x) {
  if constexpr (std::same_as<Element, F16>) {
    return to_f16(x);
  } else if constexpr (std::same_as<Element, Bf16>) {
    return to_bf16(x);
  } else {
    return Element{x};
  }
}

/// One merge of the tree. kAverage and kScaledSum merge as kSum.
template <ReduceOp Op, typename Element>
TRIREME_INLINE_LOOP constexpr Wide<Element> merged(Wide<Element> a, Wide<Element> b) {
  using enum ReduceOp;
  using T = Wide<Element>;
  if constexpr (Op == kMin || Op == kMax) {
    const bool takes_a = Op == kMin ? !(b < a) : !(a < b);
    if constexpr (std::floating_point<T>) {
      return (takes_a && b == b) || a != a ? a : b;
    } else {
      return takes_a ? a : b;
    }
  } else if constexpr (std::floating_point<T>) {
    if constexpr (Op == kRoundedSum) return widened(narrowed<Element>(a + b));
    return Op == kProduct ? a * b : a + b;
  } else {
    const auto x = static_cast<std::make_unsigned_t<T>>(a);
    const auto y = static_cast<std::make_unsigned_t<T>>(b);
    if constexpr (Op == kProduct) return static_cast<T>(std::uint64_t{x} * y);
    if constexpr (Op == kAnd) return static_cast<T>(x & y);
    if constexpr (Op == kOr) return static_cast<T>(x | y);
    if constexpr (Op == kXor) return static_cast<T>(x ^ y);
    return static_cast<T>(x + y);
  }
}

}  // namespace trireme::kernels
