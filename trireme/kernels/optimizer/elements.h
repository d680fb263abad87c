#pragma once

// A step that changes each element by itself is written once, for one element, and compiled for
// every set of instructions:
//
//     for_each_element(n, [=](float g, float& p) TRIREME_ELEMENT { p -= rate * g; }, gradient, p);

#include <cstdint>

#include "trireme/kernels/optimizer/state.h"
#include "trireme/kernels/simd.h"

/// What a step is marked with: inlined into every compiled form. It captures by value, so that its
/// constants stay in registers.
#define TRIREME_ELEMENT __attribute__((always_inline))

namespace trireme::kernels::internal {

inline constexpr std::int64_t kElementPiece = 64;

/// Elements between those in work and those that memory is asked for. These steps wait for memory,
/// and processors do not look ahead over the end of a page: 10 % (2.5 GHz Xeon, 2026-11).
inline constexpr std::int64_t kAhead = 512;

template <typename T>
TRIREME_INLINE_LOOP void ask_for(const T* x) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < kElementPiece; i += kLine) __builtin_prefetch(x + kAhead + i);
}

/// The same of one line of f32 of each.
template <typename... Arrays>
TRIREME_INLINE_LOOP void ask_for_line(const Arrays*... arrays) {
  (__builtin_prefetch(arrays + kAhead), ...);
}

template <typename Step, typename... Arrays>
TRIREME_INLINE_LOOP void element_piece(const Step& step, std::int64_t n, Arrays*... arrays) {
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) step(arrays[i]...);
}

template <typename Step, typename... Arrays>
TRIREME_INLINE_LOOP void element_loop(const Step& shared_step, std::int64_t n, Arrays*... arrays) {
  const Step step = shared_step;
  const std::int64_t full = n / kElementPiece * kElementPiece;
  for (std::int64_t i = 0; i < full; i += kElementPiece) {
    (ask_for(arrays + i), ...);
    element_piece(step, kElementPiece, (arrays + i)...);
  }
  element_piece(step, n - full, (arrays + full)...);
}

template <typename Step, typename... Arrays>
TRIREME_AVX2 void element_loop_avx2(const Step& step, std::int64_t n, Arrays*... arrays) {
  element_loop(step, n, arrays...);
}

template <typename Step, typename... Arrays>
TRIREME_AVX512 void element_loop_avx512(const Step& step, std::int64_t n, Arrays*... arrays) {
  element_loop(step, n, arrays...);
}

/// Calls step(arrays[i]...) for i < n, in any order. Arrays do not overlap.
template <typename Step, typename... Arrays>
void for_each_element(std::int64_t n, const Step& step, Arrays*... arrays) {
  if (has_avx512()) return element_loop_avx512(step, n, arrays...);
  if (has_avx2()) return element_loop_avx2(step, n, arrays...);
  element_loop(step, n, arrays...);
}

}  // namespace trireme::kernels::internal
