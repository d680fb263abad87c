#include "trireme/kernels/norm/norm.h"

#include <algorithm>

#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

constexpr int kSimdLanes = 16;

template <typename T>
TRIREME_INLINE_LOOP double block_sum(const T* x, std::int64_t n) {
  double lanes[kSimdLanes] = {};
  const std::int64_t full = n / kSimdLanes * kSimdLanes;
  for (std::int64_t i = 0; i < full; i += kSimdLanes) {
    for (int lane = 0; lane < kSimdLanes; ++lane) {
      const auto element = static_cast<double>(to_f32(x[i + lane]));
      lanes[lane] += element * element;
    }
  }
  for (std::int64_t i = full; i < n; ++i) {
    const auto element = static_cast<double>(to_f32(x[i]));
    lanes[i - full] += element * element;
  }
  // The tree of 16 items merges neighbours of 1, then of 2, 4 and 8.
  for (int stride = 1; stride < kSimdLanes; stride *= 2) {
    for (int lane = 0; lane < kSimdLanes; lane += 2 * stride) lanes[lane] += lanes[lane + stride];
  }
  return lanes[0];
}

template <typename T>
TRIREME_AVX2 double block_sum_avx2(const T* x, std::int64_t n) {
  return block_sum(x, n);
}

template <typename T>
double any_block(const T* x, std::int64_t n) {
  return has_avx2() ? block_sum_avx2(x, n) : block_sum(x, n);
}

template <typename T>
double fold_blocks(const T* x, std::int64_t n) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    total += any_block(x + begin, std::min(kNormBlock, n - begin));
  }
  return total;
}

}  // namespace

double sum_of_squares(const float* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const double* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const Bf16* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const F16* x, std::int64_t n) { return any_block(x, n); }

double square_norm(const float* x, std::int64_t n) { return fold_blocks(x, n); }
double square_norm(const double* x, std::int64_t n) { return fold_blocks(x, n); }
double square_norm(const Bf16* x, std::int64_t n) { return fold_blocks(x, n); }
double square_norm(const F16* x, std::int64_t n) { return fold_blocks(x, n); }

}  // namespace trireme::kernels
