#include "trireme/kernels/philox.h"

#include "trireme/base/random.h"
#include "trireme/kernels/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trireme::kernels {
namespace {

using Row = std::array<std::uint32_t, 3>;
using Key = std::array<std::uint32_t, 2>;

void philox_row_portable(const Row& row, const Key& key, std::int64_t n, std::uint32_t* words,
                         PhiloxCounters counters) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t counter = counters.first + static_cast<std::uint32_t>(i) * counters.step;
    const auto four = philox({counter, row[0], row[1], row[2]}, key);
    for (int w = 0; w < 4; ++w) words[w * n + i] = four[w];
  }
}

#if defined(__x86_64__)

// By hand, since compilers multiply 64 by 64 bits where 32 by 32 are meant (twice the time, GCC
// 12). A counter's words sit in the lower halves of 64-bit lanes; the upper halves hold what is
// left of products, which the next multiplication does not read. Vectors of even and of odd
// counters are merged at the end.

constexpr long long kMultiplier0 = 0xD2511F53;
constexpr long long kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
constexpr __mmask8 kAll = 0xFF;  // of maskz forms, since GCC 12 warns of its own plain ones

/// The upper halves, in place of the lower ones; what shifts would do waits for the multiplier's
/// port.
TRIREME_AVX512 inline __m512i upper_avx512(__m512i x) {
  return _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_DDBB);
}
TRIREME_AVX2 inline __m256i upper_avx2(__m256i x) { return _mm256_shuffle_epi32(x, 0xF5); }

TRIREME_AVX512 inline void rounds_avx512(__m512i c[4], const __m512i keys[kRounds][2]) {
  const __m512i multiplier0 = _mm512_set1_epi64(kMultiplier0);
  const __m512i multiplier1 = _mm512_set1_epi64(kMultiplier1);
  for (int round = 0; round < kRounds; ++round) {
    const __m512i p0 = _mm512_maskz_mul_epu32(kAll, c[0], multiplier0);
    const __m512i p1 = _mm512_maskz_mul_epu32(kAll, c[2], multiplier1);
    constexpr int kXor3 = 0x96;
    c[0] = _mm512_ternarylogic_epi64(upper_avx512(p1), c[1], keys[round][0], kXor3);
    c[2] = _mm512_ternarylogic_epi64(upper_avx512(p0), c[3], keys[round][1], kXor3);
    c[1] = p1;
    c[3] = p0;
  }
}

TRIREME_AVX512 void philox_row_avx512(const Row& row, const Key& key, std::int64_t n,
                                      std::uint32_t* words, PhiloxCounters counters) {
  __m512i keys[kRounds][2];
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    keys[round][0] = _mm512_set1_epi64(key[0] + round * kWeyl0);
    keys[round][1] = _mm512_set1_epi64(key[1] + round * kWeyl1);
  }
  const auto step = static_cast<long long>(counters.step);
  const __m512i evens =
      _mm512_setr_epi64(0, 2 * step, 4 * step, 6 * step, 8 * step, 10 * step, 12 * step, 14 * step);
  for (std::int64_t i = 0; i < n; i += 16) {
    __m512i c[2][4];
    for (int odd = 0; odd < 2; ++odd) {
      c[odd][0] = _mm512_add_epi64(evens, _mm512_set1_epi64(counters.first + (i + odd) * step));
      for (int w = 1; w < 4; ++w) c[odd][w] = _mm512_set1_epi64(row[w - 1]);
      rounds_avx512(c[odd], keys);
    }
    for (int w = 0; w < 4; ++w) {
      const __m512i upper = _mm512_maskz_slli_epi64(kAll, c[1][w], 32);
      _mm512_storeu_si512(words + w * n + i, _mm512_mask_blend_epi32(0xAAAA, c[0][w], upper));
    }
  }
}

TRIREME_AVX2 inline void rounds_avx2(__m256i c[4], const __m256i keys[kRounds][2]) {
  const __m256i multiplier0 = _mm256_set1_epi64x(kMultiplier0);
  const __m256i multiplier1 = _mm256_set1_epi64x(kMultiplier1);
  for (int round = 0; round < kRounds; ++round) {
    const __m256i p0 = _mm256_mul_epu32(c[0], multiplier0);
    const __m256i p1 = _mm256_mul_epu32(c[2], multiplier1);
    const __m256i with_key0 = _mm256_xor_si256(c[1], keys[round][0]);
    const __m256i with_key1 = _mm256_xor_si256(c[3], keys[round][1]);
    c[0] = _mm256_xor_si256(upper_avx2(p1), with_key0);
    c[2] = _mm256_xor_si256(upper_avx2(p0), with_key1);
    c[1] = p1;
    c[3] = p0;
  }
}

TRIREME_AVX2 void philox_row_avx2(const Row& row, const Key& key, std::int64_t n,
                                  std::uint32_t* words, PhiloxCounters counters) {
  __m256i keys[kRounds][2];
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    keys[round][0] = _mm256_set1_epi64x(key[0] + round * kWeyl0);
    keys[round][1] = _mm256_set1_epi64x(key[1] + round * kWeyl1);
  }
  const auto step = static_cast<long long>(counters.step);
  const __m256i evens = _mm256_setr_epi64x(0, 2 * step, 4 * step, 6 * step);
  for (std::int64_t i = 0; i < n; i += 8) {
    __m256i c[2][4];
    for (int odd = 0; odd < 2; ++odd) {
      c[odd][0] = _mm256_add_epi64(evens, _mm256_set1_epi64x(counters.first + (i + odd) * step));
      for (int w = 1; w < 4; ++w) c[odd][w] = _mm256_set1_epi64x(row[w - 1]);
      rounds_avx2(c[odd], keys);
    }
    for (int w = 0; w < 4; ++w) {
      const __m256i upper = _mm256_slli_epi64(c[1][w], 32);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + w * n + i),
                          _mm256_blend_epi32(c[0][w], upper, 0xAA));
    }
  }
}

#endif

}  // namespace

void philox_row(std::array<std::uint32_t, 3> row, std::array<std::uint32_t, 2> key, std::int64_t n,
                std::uint32_t* words, PhiloxCounters counters) {
#if defined(__x86_64__)
  if (has_avx512()) return philox_row_avx512(row, key, n, words, counters);
  if (has_avx2()) return philox_row_avx2(row, key, n, words, counters);
#endif
  philox_row_portable(row, key, n, words, counters);
}

}  // namespace trireme::kernels
