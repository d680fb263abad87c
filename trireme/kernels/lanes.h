// 16 floats, in as many registers as a set of instructions needs for them; the same operations on
// each, so that all sets give the same bits. Included by files that each_isa.h compiles: once for
// each set, hence no `#pragma once`.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "trireme/kernels/half.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define TRIREME_LANES inline __attribute__((always_inline))

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {

inline constexpr int kLanes = 16;
inline constexpr int kPartLanes = TRIREME_PART_BYTES / 4;
inline constexpr int kParts = kLanes / kPartLanes;

typedef float Part __attribute__((vector_size(TRIREME_PART_BYTES)));
typedef std::int32_t IntPart __attribute__((vector_size(TRIREME_PART_BYTES)));
typedef std::uint32_t WordPart __attribute__((vector_size(TRIREME_PART_BYTES)));
typedef std::uint16_t ShortPart __attribute__((vector_size(TRIREME_PART_BYTES / 2)));

struct Lanes {
  Part part[kParts];
};

TRIREME_LANES Lanes all(float x) {
  Lanes r;
  for (Part& part : r.part) part = x - Part{};  // x + 0 would be an addition, because of -0
  return r;
}

// Whole registers are copied one by one: of larger structures GCC makes copies of 16 bytes through
// the stack, from which a processor cannot forward to a load of 32.

TRIREME_LANES Lanes load(const float* x) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) std::memcpy(&r.part[p], x + p * kPartLanes, sizeof r.part[p]);
  return r;
}

TRIREME_LANES void store(const Lanes& a, float* x) {
  for (int p = 0; p < kParts; ++p) std::memcpy(x + p * kPartLanes, &a.part[p], sizeof a.part[p]);
}

#if TRIREME_PART_BYTES == 32
/// -1 in the first `count` of a register's lanes; none below 1, all from 8 on.
TRIREME_LANES __m256i first_of_part(std::int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<std::int32_t>(count)), lanes);
}
#endif

/// The first `count` of 16; the others are 0, and their memory is not touched.
TRIREME_LANES Lanes load_first(const float* x, std::int64_t count) {
  if (count >= kLanes) return load(x);
#if TRIREME_PART_BYTES == 64  // through memory a load would wait for the stores before it
  return {{_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), x)}};
#elif TRIREME_PART_BYTES == 32
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
    r.part[p] = _mm256_maskload_ps(x + p * kPartLanes, first_of_part(count - p * kPartLanes));
  }
  return r;
#else
  float rest[kLanes] = {};
  std::memcpy(&rest, x, static_cast<std::size_t>(count) * sizeof(float));
  return load(rest);
#endif
}

TRIREME_LANES void store_first(const Lanes& a, std::int64_t count, float* x) {
  if (count >= kLanes) return store(a, x);
#if TRIREME_PART_BYTES == 64
  _mm512_mask_storeu_ps(x, static_cast<__mmask16>((1U << count) - 1), a.part[0]);
#elif TRIREME_PART_BYTES == 32
  for (int p = 0; p < kParts; ++p) {
    _mm256_maskstore_ps(x + p * kPartLanes, first_of_part(count - p * kPartLanes), a.part[p]);
  }
#else
  float lanes[kLanes];
  store(a, lanes);
  std::memcpy(x, lanes, static_cast<std::size_t>(count) * sizeof(float));
#endif
}

TRIREME_LANES Lanes load_first(const Bf16* x, std::int64_t count) {
  Bf16 rest[kLanes];
  if (count < kLanes) {
    std::memset(&rest, 0, sizeof rest);
    std::memcpy(&rest, x, static_cast<std::size_t>(count) * sizeof *x);
    x = rest;
  }
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
    ShortPart halves;
    std::memcpy(&halves, x + p * kPartLanes, sizeof halves);
    const WordPart words = __builtin_convertvector(halves, WordPart) << 16;
    std::memcpy(&r.part[p], &words, sizeof words);
  }
  return r;
}

/// Of lanes that bf16 holds exactly.
TRIREME_LANES void store_first(const Lanes& a, std::int64_t count, Bf16* x) {
  Bf16 all_lanes[kLanes];
  Bf16* const to = count >= kLanes ? x : all_lanes;
  for (int p = 0; p < kParts; ++p) {
    WordPart words;
    std::memcpy(&words, &a.part[p], sizeof words);
    const ShortPart halves = __builtin_convertvector(words >> 16, ShortPart);
    std::memcpy(to + p * kPartLanes, &halves, sizeof halves);
  }
  if (count < kLanes) std::memcpy(x, to, static_cast<std::size_t>(count) * sizeof *x);
}

/// As to_bf16 (half.h), widened again.
TRIREME_LANES Lanes rounded_to_bf16(const Lanes& a) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
    WordPart bits;
    std::memcpy(&bits, &a.part[p], sizeof bits);
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000;
    bits = a.part[p] == a.part[p] ? bits : WordPart{} + 0x7FC00000;
    std::memcpy(&r.part[p], &bits, sizeof bits);
  }
  return r;
}

/// In the type of `x`, to nearest, ties to even.
TRIREME_LANES void store_rounded(const Lanes& a, std::int64_t count, float* x) {
  store_first(a, count, x);
}
TRIREME_LANES void store_rounded(const Lanes& a, std::int64_t count, Bf16* x) {
  store_first(rounded_to_bf16(a), count, x);
}

#define TRIREME_LANES_OPERATOR(op)                                       \
  TRIREME_LANES Lanes operator op(const Lanes& a, const Lanes& b) {      \
    Lanes r;                                                             \
    for (int p = 0; p < kParts; ++p) r.part[p] = a.part[p] op b.part[p]; \
    return r;                                                            \
  }
TRIREME_LANES_OPERATOR(+)
TRIREME_LANES_OPERATOR(-)
TRIREME_LANES_OPERATOR(*)
TRIREME_LANES_OPERATOR(/)
#undef TRIREME_LANES_OPERATOR

/// a * b + c, rounded once.
TRIREME_LANES Lanes multiply_add(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
#if TRIREME_PART_BYTES == 64
    r.part[p] = _mm512_fmadd_ps(a.part[p], b.part[p], c.part[p]);
#elif TRIREME_PART_BYTES == 32
    r.part[p] = _mm256_fmadd_ps(a.part[p], b.part[p], c.part[p]);
#else
    for (int i = 0; i < kPartLanes; ++i) {
      r.part[p][i] = __builtin_fmaf(a.part[p][i], b.part[p][i], c.part[p][i]);
    }
#endif
  }
  return r;
}

TRIREME_LANES Lanes root(const Lanes& a) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
#if TRIREME_PART_BYTES == 64
    r.part[p] = _mm512_maskz_sqrt_ps(0xFFFF, a.part[p]);
#elif TRIREME_PART_BYTES == 32
    r.part[p] = _mm256_sqrt_ps(a.part[p]);
#else
    for (int i = 0; i < kPartLanes; ++i) r.part[p][i] = __builtin_sqrtf(a.part[p][i]);
#endif
  }
  return r;
}

/// b where a is not above it, b too where either is NaN.
TRIREME_LANES Lanes larger(const Lanes& a, const Lanes& b) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) r.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
  return r;
}

TRIREME_LANES Lanes smaller(const Lanes& a, const Lanes& b) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) r.part[p] = a.part[p] < b.part[p] ? a.part[p] : b.part[p];
  return r;
}

/// Bit i: lane i of a is above that of b, or one of both is NaN.
TRIREME_LANES std::uint32_t above_or_nan(const Lanes& a, const Lanes& b) {
  std::uint32_t bits = 0;
  for (int p = 0; p < kParts; ++p) {
#if TRIREME_PART_BYTES == 64
    bits |= _mm512_cmp_ps_mask(a.part[p], b.part[p], _CMP_NLE_UQ);
#elif TRIREME_PART_BYTES == 32
    const __m256 is_above = _mm256_cmp_ps(a.part[p], b.part[p], _CMP_NLE_UQ);
    bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(is_above)) << (p * kPartLanes);
#else
    for (int i = 0; i < kPartLanes; ++i) {
      bits |= a.part[p][i] <= b.part[p][i] ? 0 : std::uint32_t{1} << (p * kPartLanes + i);
    }
#endif
  }
  return bits;
}

/// Lanes whose bit is set; 0 in the others.
TRIREME_LANES Lanes keep(std::uint32_t bits, const Lanes& a) {
  Lanes r;
  for (int p = 0; p < kParts; ++p) {
#if TRIREME_PART_BYTES == 64
    r.part[p] = _mm512_maskz_mov_ps(static_cast<__mmask16>(bits), a.part[p]);
#else
    IntPart own;
    for (int i = 0; i < kPartLanes; ++i) own[i] = 1 << (p * kPartLanes + i);
    const IntPart is_set = (own & static_cast<std::int32_t>(bits)) != 0;
    r.part[p] = is_set ? a.part[p] : Part{};
#endif
  }
  return r;
}

/// The sum over lanes: neighbours of 1, then of 2, 4 and 8.
TRIREME_LANES float sum(const Lanes& a) {
#if TRIREME_PART_BYTES == 64
  Part s = a.part[0];
  s += _mm512_maskz_permute_ps(0xFFFF, s, 0xB1);
  s += _mm512_maskz_permute_ps(0xFFFF, s, 0x4E);
  s += _mm512_maskz_shuffle_f32x4(0xFFFF, s, s, 0xB1);
  s += _mm512_maskz_shuffle_f32x4(0xFFFF, s, s, 0x4E);
  return s[0];
#elif TRIREME_PART_BYTES == 32
  float sums[kParts];
  for (int p = 0; p < kParts; ++p) {
    Part s = a.part[p];
    s += _mm256_permute_ps(s, 0xB1);
    s += _mm256_permute_ps(s, 0x4E);
    sums[p] = s[0] + s[4];
  }
  return sums[0] + sums[1];
#else
  float lanes[kLanes];
  store(a, lanes);
  for (int stride = 1; stride < kLanes; stride *= 2) {
    for (int lane = 0; lane < kLanes; lane += 2 * stride) lanes[lane] += lanes[lane + stride];
  }
  return lanes[0];
#endif
}

/// The largest of lanes, of which none or each is NaN.
TRIREME_LANES float largest(const Lanes& a) {
#if TRIREME_PART_BYTES == 64
  Lanes m = a;
  m = larger(m, {{_mm512_maskz_permute_ps(0xFFFF, m.part[0], 0xB1)}});
  m = larger(m, {{_mm512_maskz_permute_ps(0xFFFF, m.part[0], 0x4E)}});
  m = larger(m, {{_mm512_maskz_shuffle_f32x4(0xFFFF, m.part[0], m.part[0], 0xB1)}});
  m = larger(m, {{_mm512_maskz_shuffle_f32x4(0xFFFF, m.part[0], m.part[0], 0x4E)}});
  return m.part[0][0];
#else
  float lanes[kLanes];
  store(a, lanes);
  float result = lanes[0];
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;
#endif
}

/// exponential.h on each lane: the same polynomial and the same bits.
TRIREME_LANES Lanes exponential(const Lanes& x) {
  const Lanes lowest = all(-86.6F);
  const Lanes rounder = all(0x1.8p23F);
  const Lanes inside = smaller(all(88.73F), larger(lowest, x));
  const Lanes shifted = multiply_add(inside, all(0x1.715476p0F), rounder);
  const Lanes minus_n = rounder - shifted;
  const Lanes high = multiply_add(minus_n, all(0x1.62e400p-1F), inside);
  const Lanes r = multiply_add(minus_n, all(0x1.7f7d1cp-20F), high);
  Lanes y = all(0x1.6a23d0p-10F);
  for (const float term :
       {0x1.123a20p-7F, 0x1.5558f2p-5F, 0x1.555492p-3F, 0x1.fffffcp-2F, 1.0F, 1.0F}) {
    y = multiply_add(y, r, all(term));
  }
  for (int p = 0; p < kParts; ++p) {
    IntPart bits;
    std::memcpy(&bits, &shifted.part[p], sizeof bits);
    bits = (bits - 0x4B400000 + 126) << 23;  // the bits of rounder: 2^(n - 1) is left
    Part scale;
    std::memcpy(&scale, &bits, sizeof scale);
    y.part[p] = x.part[p] < lowest.part[p] ? Part{} : y.part[p] * scale * 2.0F;
  }
  return y;
}

// ---- 16 sums in f64

typedef double DoublePart __attribute__((vector_size(TRIREME_PART_BYTES)));
typedef float HalfPart __attribute__((vector_size(TRIREME_PART_BYTES / 2)));

struct DoubleLanes {
  DoublePart part[2 * kParts];
};

TRIREME_LANES DoubleLanes no_sums() { return DoubleLanes{}; }

TRIREME_LANES DoubleLanes load(const double* x) {
  DoubleLanes r;
  for (int p = 0; p < 2 * kParts; ++p) {
    std::memcpy(&r.part[p], x + p * (kPartLanes / 2), sizeof r.part[p]);
  }
  return r;
}

TRIREME_LANES void store(const DoubleLanes& a, double* x) {
  for (int p = 0; p < 2 * kParts; ++p) {
    std::memcpy(x + p * (kPartLanes / 2), &a.part[p], sizeof a.part[p]);
  }
}

TRIREME_LANES DoubleLanes operator+(const DoubleLanes& a, const DoubleLanes& b) {
  DoubleLanes r;
  for (int p = 0; p < 2 * kParts; ++p) r.part[p] = a.part[p] + b.part[p];
  return r;
}

/// a^2 in f64: exact.
TRIREME_LANES DoubleLanes squares(const Lanes& a) {
  DoubleLanes r;
  for (int p = 0; p < 2 * kParts; ++p) {
    HalfPart half;
    std::memcpy(&half, reinterpret_cast<const char*>(&a.part[p / 2]) + p % 2 * sizeof half,
                sizeof half);
#if TRIREME_PART_BYTES == 64  // GCC 12 makes three instructions of it
    const DoublePart wide = _mm512_maskz_cvtps_pd(0xFF, half);
#else
    const DoublePart wide = __builtin_convertvector(half, DoublePart);
#endif
    r.part[p] = wide * wide;
  }
  return r;
}

TRIREME_LANES void add_squares(const Lanes& a, DoubleLanes& sums) { sums = sums + squares(a); }

/// As `sum`.
TRIREME_LANES double sum(const DoubleLanes& a) {
  double lanes[kLanes];
  store(a, lanes);
  for (int stride = 1; stride < kLanes; stride *= 2) {
    for (int lane = 0; lane < kLanes; lane += 2 * stride) lanes[lane] += lanes[lane + stride];
  }
  return lanes[0];
}

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE

#undef TRIREME_LANES
