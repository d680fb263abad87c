#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trireme/dtype.h"

namespace trireme::kernels {

/// How the elements of several ranks become one.
enum class ReduceOp : std::uint8_t {
  kSum,
  kAverage,
  kProduct,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kScaledSum,   ///< Of each source times its scale.
  kRoundedSum,  ///< kSum, but f16 and bf16 are rounded after each merge: partial sums are elements.
};
inline constexpr ReduceOp kLastReduceOp = ReduceOp::kRoundedSum;

/// `sum`, `average`, ...
std::string_view to_text(ReduceOp op);

/// Whether `combine` knows the operation for the type: f64 f32 f16 bf16 all but the bitwise ones,
/// i64 i32 i16 i8 u8 all but the average, the scaled and the rounded sum, bool likewise; no other
/// type.
bool is_reducible(Dtype dtype, ReduceOp op);

struct ElementReduction {
  Dtype dtype = Dtype::kF32;
  ReduceOp op = ReduceOp::kSum;

  /// kScaledSum: one per source, rounded to the type in which elements are combined (f32, or f64
  /// for f64). Each product is rounded before it is summed. Not read by other operations.
  std::span<const double> scales = {};
};

/// How results are written. Streaming stores go past the caches: right for what is larger than they
/// are and lies nowhere in them yet.
enum class Stores : std::uint8_t { kCached, kStreaming };

/// targets[t][i] = the operation over sources[0][i], sources[1][i], ... for i < count, combined by
/// THE tree (tree.h), in one pass.
///
/// f16 and bf16 are combined in f32 and rounded once, to nearest, ties to even; in kRoundedSum after
/// each merge. The average is the sum divided by the number of sources. Whole numbers wrap around.
/// NaN wins in kMin and kMax. bool: what is not 0 is 1; sum and max are `or`, product and min are
/// `and`.
///
/// sources   at least one, `count` elements each, aligned to the element.
/// targets   at least one; each is one of the sources or overlaps none of them.
/// Errors    kInvalidArgument where !is_reducible, a list is empty, or a scale is missing.
/// Cost      reads every source and writes every target once.
void combine(const ElementReduction& reduction, std::span<const std::byte* const> sources,
             std::span<std::byte* const> targets, std::int64_t count,
             Stores stores = Stores::kCached);

/// Copies with streaming stores. No overlap.
void copy_streaming(const std::byte* source, std::byte* target, std::size_t bytes);

}  // namespace trireme::kernels
