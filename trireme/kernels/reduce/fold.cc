#include "trireme/kernels/reduce/fold.h"

#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

template <typename Source, typename Accumulator>
TRIREME_INLINE_LOOP void write_loop(const Source* __restrict source,
                                    Accumulator* __restrict accumulator, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) accumulator[i] = to_f32(source[i]);
}

template <typename Source, typename Accumulator>
TRIREME_INLINE_LOOP void add_loop(const Source* __restrict source,
                                  Accumulator* __restrict accumulator, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    accumulator[i] += static_cast<Accumulator>(to_f32(source[i]));
  }
}

TRIREME_INLINE_LOOP void add_rounded_loop(float* __restrict accumulator, const float* __restrict x,
                                          std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    accumulator[i] = rounded_to_bf16(accumulator[i]) + rounded_to_bf16(x[i]);
  }
}

TRIREME_INLINE_LOOP void round_through_loop(float* data, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) data[i] = rounded_to_bf16(data[i]);
}

TRIREME_INLINE_LOOP void round_loop(const float* __restrict source, Bf16* __restrict target,
                                    std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = to_bf16(source[i]);
}

TRIREME_AVX2 void add_rounded_avx2(float* accumulator, const float* x, std::int64_t n) {
  add_rounded_loop(accumulator, x, n);
}

TRIREME_AVX2 void round_through_avx2(float* data, std::int64_t n) { round_through_loop(data, n); }

TRIREME_AVX2 void round_avx2(const float* source, Bf16* target, std::int64_t n) {
  round_loop(source, target, n);
}

template <typename Source, typename Accumulator>
TRIREME_AVX2 void write_avx2(const Source* source, Accumulator* accumulator, std::int64_t n) {
  write_loop(source, accumulator, n);
}

template <typename Source, typename Accumulator>
TRIREME_AVX2 void add_avx2(const Source* source, Accumulator* accumulator, std::int64_t n) {
  add_loop(source, accumulator, n);
}

template <typename Source, typename Accumulator>
void fold_any(FoldStep step, const Source* source, Accumulator* accumulator, std::int64_t n) {
  if (step == FoldStep::kFirst) {
    has_avx2() ? write_avx2(source, accumulator, n) : write_loop(source, accumulator, n);
  } else {
    has_avx2() ? add_avx2(source, accumulator, n) : add_loop(source, accumulator, n);
  }
}

}  // namespace

void fold(FoldStep step, const float* source, float* accumulator, std::int64_t n) {
  fold_any(step, source, accumulator, n);
}

void fold(FoldStep step, const double* source, double* accumulator, std::int64_t n) {
  fold_any(step, source, accumulator, n);
}

void fold(FoldStep step, const float* source, double* accumulator, std::int64_t n) {
  fold_any(step, source, accumulator, n);
}

void fold(FoldStep step, const Bf16* source, float* accumulator, std::int64_t n) {
  fold_any(step, source, accumulator, n);
}

void fold(FoldStep step, const F16* source, float* accumulator, std::int64_t n) {
  fold_any(step, source, accumulator, n);
}

void add_into(float* accumulator, const float* x, std::int64_t n) {
  fold_any(FoldStep::kNext, x, accumulator, n);
}

void add_into(double* accumulator, const double* x, std::int64_t n) {
  fold_any(FoldStep::kNext, x, accumulator, n);
}

void add_rounded(float* accumulator, const float* x, std::int64_t n) {
  has_avx2() ? add_rounded_avx2(accumulator, x, n) : add_rounded_loop(accumulator, x, n);
}

void round_through_bf16(float* data, std::int64_t n) {
  has_avx2() ? round_through_avx2(data, n) : round_through_loop(data, n);
}

void round_to(const float* source, Bf16* target, std::int64_t n) {
  has_avx2() ? round_avx2(source, target, n) : round_loop(source, target, n);
}

void round_to(const float* source, F16* target, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = to_f16(source[i]);
}

}  // namespace trireme::kernels
