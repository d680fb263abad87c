#include "benchmarks/kernels/bounds.h"

#include <algorithm>
#include <array>
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

/// Arrays of a pattern are as many as an optimizer's.
constexpr int kArrays = 4;
constexpr std::int64_t kElements = 16 << 20;  // of each: far more than caches hold

struct Arrays {
  std::array<std::vector<float>, kArrays> all;
};

TRIREME_INLINE_LOOP void read_loop(Arrays& arrays) {
  float sums[64] = {};
  const float *a = arrays.all[0].data(), *b = arrays.all[1].data();
  const float *c = arrays.all[2].data(), *d = arrays.all[3].data();
  for (std::int64_t i = 0; i < kElements; i += 64) {
    for (int k = 0; k < 64; ++k) sums[k] += (a[i + k] + b[i + k]) + (c[i + k] + d[i + k]);
  }
  arrays.all[0][0] = sums[0] * 0 + 1;
}

TRIREME_INLINE_LOOP void add_scaled_loop(Arrays& arrays) {
  const float* x = arrays.all[0].data();
  float* y = arrays.all[1].data();
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < kElements; ++i) y[i] = fma(0.5F, x[i], y[i]);
}

TRIREME_INLINE_LOOP void update_loop(Arrays& arrays) {
  const float* x = arrays.all[0].data();
  float *a = arrays.all[1].data(), *b = arrays.all[2].data(), *c = arrays.all[3].data();
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < kElements; ++i) {
    a[i] = fma(0.5F, x[i], a[i] * 0.5F);
    b[i] = fma(0.25F, x[i], b[i] * 0.5F);
    c[i] = fma(0.125F, x[i], c[i] * 0.5F);
  }
}

TRIREME_AVX2 void read_avx2(Arrays& arrays) { read_loop(arrays); }
TRIREME_AVX2 void add_scaled_avx2(Arrays& arrays) { add_scaled_loop(arrays); }
TRIREME_AVX2 void update_avx2(Arrays& arrays) { update_loop(arrays); }

struct Pattern {
  void (*run)(Arrays& arrays);
  double bytes;  ///< Read and written, of each element.
};

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
  const bool fast = has_avx2();
  std::vector<Arrays> arrays(num_threads);
  for (Arrays& own : arrays) own.all.fill(std::vector<float>(kElements, 1.0F));
  double bytes_per_s = 0;
  for (const Pattern& pattern : {Pattern{fast ? read_avx2 : read_loop, 16},
                                 Pattern{fast ? add_scaled_avx2 : add_scaled_loop, 12},
                                 Pattern{fast ? update_avx2 : update_loop, 28}}) {
    const double seconds =
        seconds_of(spread, num_threads, [&](std::int64_t i) { pattern.run(arrays[i]); });
    bytes_per_s = std::max(bytes_per_s, pattern.bytes * kElements * num_threads / seconds);
  }
  const double multiply_s = seconds_of(spread, num_threads, [&](std::int64_t i) {
    (has_avx512() ? multiply_avx512
     : has_avx2() ? multiply_avx2
                  : multiply_loop)(arrays[i].all[0].data());
  });
  return {.bytes_per_s = bytes_per_s,
          .flops_per_s = 2.0 * kSums * kRounds * num_threads / multiply_s};
}

}  // namespace trireme::kernels::bench
