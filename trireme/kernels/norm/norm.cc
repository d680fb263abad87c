#include "trireme/kernels/norm/norm.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

constexpr int kSimdLanes = 16;

/// Adds the squares of whole rows of 16.
template <typename T>
TRIREME_INLINE_LOOP void add_rows(const T* __restrict x, std::int64_t n, double* __restrict lanes) {
  for (std::int64_t i = 0; i < n; i += kSimdLanes) {
    for (int lane = 0; lane < kSimdLanes; ++lane) {
      const auto element = static_cast<double>(to_f32(x[i + lane]));
      lanes[lane] += element * element;
    }
  }
}

#if defined(__x86_64__)
/// The same by four at a time, which are widened as they are loaded: compilers load eight and take
/// them apart, which takes a third longer.
TRIREME_AVX2 void add_rows_avx2(const float* x, std::int64_t n, double* lanes) {
  __m256d sums[4] = {};
  for (std::int64_t i = 0; i < n; i += kSimdLanes) {
    for (int k = 0; k < 4; ++k) {
      const __m256d wide = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * k));
      sums[k] = _mm256_add_pd(sums[k], _mm256_mul_pd(wide, wide));
    }
  }
  for (int k = 0; k < 4; ++k) _mm256_storeu_pd(lanes + 4 * k, sums[k]);
}
#endif

template <typename T>
TRIREME_AVX2 void add_rows_avx2(const T* x, std::int64_t n, double* lanes) {
  add_rows(x, n, lanes);
}

template <typename T>
double any_block(const T* x, std::int64_t n) {
  double lanes[kSimdLanes] = {};
  const std::int64_t full = n / kSimdLanes * kSimdLanes;
  if (has_avx2()) {
    add_rows_avx2(x, full, lanes);
  } else {
    add_rows(x, full, lanes);
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

constexpr std::int64_t kPieceBlocks = 16;

template <typename T>
void sum_blocks(const T* x, std::int64_t n, double* sums, const Spread& spread) {
  const std::int64_t num_blocks = (n + kNormBlock - 1) / kNormBlock;
  const auto sum_piece = [&](std::int64_t piece) {
    const std::int64_t end = std::min((piece + 1) * kPieceBlocks, num_blocks);
    for (std::int64_t b = piece * kPieceBlocks; b < end; ++b) {
      sums[b] = any_block(x + b * kNormBlock, std::min(kNormBlock, n - b * kNormBlock));
    }
  };
  if (num_blocks <= kPieceBlocks) return sum_piece(0);
  spread((num_blocks + kPieceBlocks - 1) / kPieceBlocks, sum_piece);
}

template <typename T>
double fold_blocks(const T* x, std::int64_t n, const Spread& spread) {
  const std::int64_t num_blocks = (n + kNormBlock - 1) / kNormBlock;
  std::array<double, kPieceBlocks> few{};
  std::vector<double> many(num_blocks > kPieceBlocks ? num_blocks : 0);
  double* sums = many.empty() ? few.data() : many.data();
  sum_blocks(x, n, sums, spread);
  return std::accumulate(sums, sums + num_blocks, 0.0);
}

}  // namespace

double sum_of_squares(const float* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const double* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const Bf16* x, std::int64_t n) { return any_block(x, n); }
double sum_of_squares(const F16* x, std::int64_t n) { return any_block(x, n); }

void block_sums_of_squares(const float* x, std::int64_t n, double* blocks, const Spread& spread) {
  sum_blocks(x, n, blocks, spread);
}
void block_sums_of_squares(const double* x, std::int64_t n, double* blocks, const Spread& spread) {
  sum_blocks(x, n, blocks, spread);
}

double square_norm(const float* x, std::int64_t n, const Spread& spread) {
  return fold_blocks(x, n, spread);
}
double square_norm(const double* x, std::int64_t n, const Spread& spread) {
  return fold_blocks(x, n, spread);
}
double square_norm(const Bf16* x, std::int64_t n, const Spread& spread) {
  return fold_blocks(x, n, spread);
}
double square_norm(const F16* x, std::int64_t n, const Spread& spread) {
  return fold_blocks(x, n, spread);
}

}  // namespace trireme::kernels
