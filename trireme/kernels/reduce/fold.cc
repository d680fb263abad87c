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

void round_to(const float* source, Bf16* target, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = to_bf16(source[i]);
}

void round_to(const float* source, F16* target, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) target[i] = to_f16(source[i]);
}

}  // namespace trireme::kernels
