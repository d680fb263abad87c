#pragma once

// The two loops over the vocabulary: one reads a row of logits, the other turns it into a row of
// the gradient.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "packs/speech/kernels/element.h"
#include "trireme/kernels/exponential.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/simd.h"

namespace trireme::speech::internal {

/// sum over k of exp(x[k]) = sum * exp(max).
struct RowSum {
  float max;
  double sum;
};

constexpr int kRowLanes = 16;
constexpr std::int64_t kRowBlock = 1024;  // elements that are summed in f32

/// How far ahead memory is asked for, since processors do not look beyond a page by themselves.
constexpr std::int64_t kAhead = 1024;

TRIREME_INLINE_LOOP float larger(float a, float b) { return a > b ? a : b; }

/// NaN is not the largest; it shows in the sum. The order does not matter: 4 vectors hide latency.
template <typename T>
TRIREME_INLINE_LOOP float row_max(const T* x, std::int64_t n) {
  constexpr int kLanes = 4 * kRowLanes;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = larger(kernels::to_f32(x[i + lane]), lanes[lane]);
  }
  for (; i + kRowLanes <= n; i += kRowLanes) {
    for (int lane = 0; lane < kRowLanes; ++lane) {
      lanes[lane] = larger(kernels::to_f32(x[i + lane]), lanes[lane]);
    }
  }
  for (int lane = 0; i + lane < n; ++lane)
    lanes[lane] = larger(kernels::to_f32(x[i + lane]), lanes[lane]);
  for (int stride = kLanes / 2; stride > 0; stride /= 2) {
    for (int lane = 0; lane < stride; ++lane) {
      lanes[lane] = larger(lanes[lane + stride], lanes[lane]);
    }
  }
  return lanes[0];
}

/// sum of exp(x[i] - max) of at most kRowBlock elements; element i goes to lane i mod 16.
template <typename T>
TRIREME_INLINE_LOOP float block_sum(const T* x, float max, std::int64_t n) {
  float lanes[kRowLanes] = {};
  const std::int64_t full = n / kRowLanes * kRowLanes;
  for (std::int64_t i = 0; i < full; i += kRowLanes) {
    __builtin_prefetch(x + i + kAhead);
    for (int lane = 0; lane < kRowLanes; ++lane) {
      lanes[lane] += kernels::decay(kernels::to_f32(x[i + lane]) - max);
    }
  }
  if (full < n) {
    float rest[kRowLanes];
    std::fill_n(rest, kRowLanes, -std::numeric_limits<float>::infinity());
    for (std::int64_t i = full; i < n; ++i) rest[i - full] = kernels::to_f32(x[i]) - max;
    for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] += kernels::decay(rest[lane]);
  }
  for (int stride = 1; stride < kRowLanes; stride *= 2) {
    for (int lane = 0; lane < kRowLanes; lane += 2 * stride) lanes[lane] += lanes[lane + stride];
  }
  return lanes[0];
}

template <typename T>
TRIREME_INLINE_LOOP RowSum row_sum(const T* x, std::int64_t n) {
  const float max = row_max(x, n);
  double sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += kRowBlock) {
    sum += block_sum(x + begin, max, std::min(kRowBlock, n - begin));
  }
  return {max, sum};
}

/// gradient[i] = scale * exp(x[i] - shift); the same memory, or apart.
template <typename T>
TRIREME_INLINE_LOOP void gradient_row(const T* x, float shift, float scale, T* gradient,
                                      std::int64_t n) {
  const std::int64_t full = n / kRowLanes * kRowLanes;
  for (std::int64_t i = 0; i < full; i += kRowLanes) {
    __builtin_prefetch(x + i + kAhead);
    TRIREME_INDEPENDENT
    for (int lane = 0; lane < kRowLanes; ++lane) {
      gradient[i + lane] =
          from_f32<T>(scale * kernels::decay(kernels::to_f32(x[i + lane]) - shift));
    }
  }
  for (std::int64_t i = full; i < n; ++i) {
    gradient[i] = from_f32<T>(scale * kernels::decay(kernels::to_f32(x[i]) - shift));
  }
}

}  // namespace trireme::speech::internal
