#pragma once

// A step that changes each element by itself is written once, for one element, and compiled for
// every set of instructions:
//
//     for_each_element(n, [=](float g, float& p) TRIREME_ELEMENT { p -= rate * g; }, gradient, p);

#include <algorithm>
#include <cstdint>

#include "trireme/kernels/optimizer/state.h"
#include "trireme/kernels/simd.h"
#include "trireme/kernels/spread.h"

/// What a step is marked with: inlined into every compiled form. It captures by value, so that its
/// constants stay in registers.
#define TRIREME_ELEMENT __attribute__((always_inline))

namespace trireme::kernels::internal {

inline constexpr std::int64_t kElementPiece = 64;

/// Elements between those in work and those that memory is asked for, where that helps.
inline constexpr std::int64_t kAhead = 512;

/// Whether these steps, which wait for memory, are faster where they ask for it ahead. Intel's
/// processors do not look over the end of a page by themselves: 10 % faster (2.5 GHz Xeon, 2026-11).
/// AMD's do, and lose 10-15 % by being told (EPYC 7xx3, 2026-11).
inline bool asks_ahead() {
#if defined(__x86_64__)
  static const bool kAsks = !__builtin_cpu_is("amd");
  return kAsks;
#else
  return true;
#endif
}

template <typename T>
TRIREME_INLINE_LOOP void ask_for(const T* x) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < kElementPiece; i += kLine) __builtin_prefetch(x + kAhead + i);
}

/// The same of one line of f32 of each, for steps that compute more than they wait.
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
  if (!asks_ahead()) return element_piece(step, n, arrays...);
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

/// Elements that a thread takes at a time: a multiple of every block that a step is made of.
inline constexpr std::int64_t kSpreadPiece = std::int64_t{1} << 18;

/// Calls body(begin, count) for pieces of n elements, which do not depend on each other.
template <typename Body>
void for_each_piece(std::int64_t n, const Spread& spread, const Body& body) {
  if (n <= kSpreadPiece) return body(std::int64_t{0}, n);
  spread((n + kSpreadPiece - 1) / kSpreadPiece, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kSpreadPiece;
    body(begin, std::min(kSpreadPiece, n - begin));
  });
}

}  // namespace trireme::kernels::internal
