#include "trireme/kernels/bench/bounds.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "trireme/kernels/simd.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const Spread& spread, int num_threads, const Piece& piece) {
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    spread(num_threads, piece);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

TRIREME_INLINE_LOOP void add_scaled_loop(float factor, const float* x, float* y, std::int64_t n) {
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = fma(factor, x[i], y[i]);
}

TRIREME_AVX2 void add_scaled_avx2(float factor, const float* x, float* y, std::int64_t n) {
  add_scaled_loop(factor, x, y, n);
}

constexpr int kSums = 192;  // enough to hide the latency of 512-bit instructions
constexpr std::int64_t kRounds = 400'000;

TRIREME_INLINE_LOOP void multiply_loop(float* sums) {
  float s[kSums];
  std::copy_n(sums, kSums, s);
  for (std::int64_t i = 0; i < kRounds; ++i) {
    TRIREME_INDEPENDENT
    for (int k = 0; k < kSums; ++k) s[k] = fma(s[k], 0.999F, 0.001F);
  }
  std::copy_n(s, kSums, sums);
}

TRIREME_AVX2 void multiply_avx2(float* sums) { multiply_loop(sums); }
TRIREME_AVX512 void multiply_avx512(float* sums) { multiply_loop(sums); }

}  // namespace

Bounds measure_bounds(int num_threads) {
  const Spread spread = on_threads(num_threads);
  constexpr std::int64_t kElements = 16 << 20;
  std::vector<std::vector<float>> x(num_threads, std::vector<float>(kElements, 1.0F));
  std::vector<std::vector<float>> y = x;
  const double copy_s = seconds_of(spread, num_threads, [&](std::int64_t i) {
    (has_avx2() ? add_scaled_avx2 : add_scaled_loop)(0.5F, x[i].data(), y[i].data(), kElements);
  });
  const double multiply_s = seconds_of(spread, num_threads, [&](std::int64_t i) {
    (has_avx512() ? multiply_avx512 : has_avx2() ? multiply_avx2 : multiply_loop)(x[i].data());
  });
  return {.bytes_per_s = 12.0 * kElements * num_threads / copy_s,
          .flops_per_s = 2.0 * kSums * kRounds * num_threads / multiply_s};
}

}  // namespace trireme::kernels::bench
