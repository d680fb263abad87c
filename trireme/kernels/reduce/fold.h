#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"

namespace trireme::kernels {

/// First microbatch of a lane or a later one.
enum class FoldStep : std::uint8_t {
  kFirst,  ///< The accumulator is written: bits are kept, -0.0 included.
  kNext,   ///< The accumulator is added to.
};

/// THE lane fold: accumulator = source, or accumulator + source, element by element. bf16 and f16
/// accumulate in f32 and are rounded once, by `round_to`, when all is summed.
///
/// source, accumulator   [n] contiguous host memory that does not overlap.
/// Cost                  one pass; 12 bytes of traffic per f32 element.
void fold(FoldStep step, const float* source, float* accumulator, std::int64_t n);
void fold(FoldStep step, const double* source, double* accumulator, std::int64_t n);
void fold(FoldStep step, const float* source, double* accumulator, std::int64_t n);
void fold(FoldStep step, const Bf16* source, float* accumulator, std::int64_t n);
void fold(FoldStep step, const F16* source, float* accumulator, std::int64_t n);

/// accumulator += x: a merge of the tree. [n] contiguous, no overlap.
void add_into(float* accumulator, const float* x, std::int64_t n);
void add_into(double* accumulator, const double* x, std::int64_t n);

/// A merge of the tree whose partial sums are bf16 (docs/concepts/equality.md): both are rounded to
/// bf16, as by `round_to`, then accumulator += x in f32.
void add_rounded(float* accumulator, const float* x, std::int64_t n);

/// Each element as its `round_to` bf16 has it.
void round_through_bf16(float* data, std::int64_t n);

/// target = source rounded to nearest, ties to even; NaN stays NaN, what is beyond the range becomes
/// infinite. [n] contiguous, no overlap.
void round_to(const float* source, Bf16* target, std::int64_t n);
void round_to(const float* source, F16* target, std::int64_t n);

}  // namespace trireme::kernels
