#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

/// Elements of a norm block; the last block of a parameter may be shorter.
inline constexpr std::int64_t kNormBlock = 16 * 1024;

/// Sum of squares of one norm block in f64, the same bits on every machine: element i is squared in
/// f64 and added to SIMD lane i mod 16; the 16 lanes are combined by the tree of reduce/tree.h.
/// The products of f32, bf16 and f16 are exact; f64 products are rounded, then added.
///
/// x   [n] contiguous host memory.
double sum_of_squares(const float* x, std::int64_t n);
double sum_of_squares(const double* x, std::int64_t n);
double sum_of_squares(const Bf16* x, std::int64_t n);
double sum_of_squares(const F16* x, std::int64_t n);

/// The sum of each norm block of x into `blocks`, in order.
void block_sums_of_squares(const float* x, std::int64_t n, double* blocks,
                           const Spread& spread = on_caller);
void block_sums_of_squares(const double* x, std::int64_t n, double* blocks,
                           const Spread& spread = on_caller);

/// Square of a parameter's norm: the sums of its norm blocks, folded left; 0 for no elements. The
/// norm over parameters folds these left in byte order of their names (docs/concepts/equality.md).
/// Threads share the blocks, whose sums are folded after: they change nothing.
double square_norm(const float* x, std::int64_t n, const Spread& spread = on_caller);
double square_norm(const double* x, std::int64_t n, const Spread& spread = on_caller);
double square_norm(const Bf16* x, std::int64_t n, const Spread& spread = on_caller);
double square_norm(const F16* x, std::int64_t n, const Spread& spread = on_caller);

}  // namespace trireme::kernels
