#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/reduce/combine.h"

/// A reduction in two passes: the elements of neighbouring sources become a partial result, and the
/// partial results the result. Four sources of bf16, two and two:
///
///     x0 x1 x2 x3 (bf16)    s0 x0 + s1 x1 , s2 x2 + s3 x3 (f32)    their sum (bf16, rounded once)
///
/// Where the neighbours are subtrees of THE tree, as 2^k sources are of a multiple of as many, the
/// bits are those of `combine` over all of them.
namespace trireme::kernels {

/// What partial results are kept in, so that nothing is lost: f32 for f16 and bf16, unless every
/// merge gives an element (kMin, kMax, kRoundedSum); else `dtype`.
Dtype partial_dtype(Dtype dtype, ReduceOp op);

/// target[i] = a partial result of type `partial`: what `combine` makes of the sources, scales
/// included, but for what is done to the whole, rounding to f16 or bf16 and division.
///
/// partial   that of `partial_dtype`, or the elements' own: then rounded here, too.
/// target    `count` of them; one of the sources, if those are of its type, or apart from them.
/// Errors    those of `combine`; kInvalidArgument for another `partial`.
/// Cost      reads every source and writes the target once.
void combine_elements(const ElementReduction& reduction, Dtype partial,
                      std::span<const std::byte* const> sources, std::byte* target,
                      std::int64_t count);

/// target[i] = the result, of the reduction's type, of partial results of type `partial`, which
/// have their scales already.
///
/// num_elements   how many all of them come from: what an average is divided by.
void combine_partials(const ElementReduction& reduction, Dtype partial, int num_elements,
                      std::span<const std::byte* const> sources, std::byte* target,
                      std::int64_t count);

}  // namespace trireme::kernels
