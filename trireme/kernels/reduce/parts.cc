#include "trireme/kernels/reduce/parts.h"

#include <string>

#include "trireme/error.h"
#include "trireme/kernels/reduce/combiner.h"

namespace trireme::kernels {
namespace {

void check(const ElementReduction& reduction, Dtype partial, std::size_t num_sources) {
  const bool is_fit =
      partial == reduction.dtype || partial == partial_dtype(reduction.dtype, reduction.op);
  if (is_fit && is_reducible(reduction.dtype, reduction.op) && num_sources > 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              "cannot reduce " + std::to_string(num_sources) + " sources of " +
                  std::string(trireme::to_text(reduction.dtype)) + " by " +
                  std::string(to_text(reduction.op)) + " with partial results of " +
                  std::string(trireme::to_text(partial)) + "; expected some, and those of " +
                  "partial_dtype");
}

/// The operation without what is done to the whole.
ReduceOp part_of(ReduceOp op) { return op == ReduceOp::kAverage ? ReduceOp::kSum : op; }

/// The operation without what is done to each element, either.
ReduceOp merge_of(ReduceOp op) { return op == ReduceOp::kScaledSum ? ReduceOp::kSum : part_of(op); }

template <typename Half>
void widen(const CombineTask& task) {
  switch (task.op) {
    case ReduceOp::kProduct:
      return Combiner<Half, ReduceOp::kProduct, float>(task, 1).run();
    case ReduceOp::kScaledSum:
      return Combiner<Half, ReduceOp::kScaledSum, float>(task, 1).run();
    default:
      return Combiner<Half, ReduceOp::kSum, float>(task, 1).run();
  }
}

/// Sources: what elements are combined in.
template <typename Element>
void finish(const CombineTask& task, std::int64_t divisor) {
  using Partial = Wide<Element>;
  if (task.op == ReduceOp::kProduct) {
    return Combiner<Partial, ReduceOp::kProduct, Element>(task, divisor).run();
  }
  Combiner<Partial, ReduceOp::kSum, Element>(task, divisor).run();
}

/// An average of elements that were rounded.
template <typename Half>
void finish_rounded(const CombineTask& task, std::int64_t divisor) {
  Combiner<Half, ReduceOp::kSum>(task, divisor).run();
}

}  // namespace

Dtype partial_dtype(Dtype dtype, ReduceOp op) {
  const bool has_elements =
      op == ReduceOp::kMin || op == ReduceOp::kMax || op == ReduceOp::kRoundedSum;
  return is_half(dtype) && !has_elements ? Dtype::kF32 : dtype;
}

void combine_elements(const ElementReduction& reduction, Dtype partial,
                      std::span<const std::byte* const> sources, std::byte* target,
                      std::int64_t count) {
  check(reduction, partial, sources.size());
  const ReduceOp op = part_of(reduction.op);
  if (partial == reduction.dtype) {
    return combine({reduction.dtype, op, reduction.scales}, sources, {&target, 1}, count);
  }
  check_scales(reduction, sources.size());
  const CombineTask task{.op = op,
                         .scales = reduction.scales,
                         .sources = sources,
                         .targets = {&target, 1},
                         .count = count};
  reduction.dtype == Dtype::kF16 ? widen<F16>(task) : widen<Bf16>(task);
}

void combine_partials(const ElementReduction& reduction, Dtype partial, int num_elements,
                      std::span<const std::byte* const> sources, std::byte* target,
                      std::int64_t count) {
  check(reduction, partial, sources.size());
  const ReduceOp op = merge_of(reduction.op);
  const bool is_average = reduction.op == ReduceOp::kAverage;
  if (partial == reduction.dtype && !is_average) {
    return combine({reduction.dtype, op}, sources, {&target, 1}, count);
  }
  const CombineTask task{.op = op, .sources = sources, .targets = {&target, 1}, .count = count};
  const std::int64_t divisor = is_average ? num_elements : 1;
  const bool is_rounded = partial == reduction.dtype;
  switch (reduction.dtype) {
    case Dtype::kF16:
      return is_rounded ? finish_rounded<F16>(task, divisor) : finish<F16>(task, divisor);
    case Dtype::kBf16:
      return is_rounded ? finish_rounded<Bf16>(task, divisor) : finish<Bf16>(task, divisor);
    case Dtype::kF64:
      return finish<double>(task, divisor);
    default:
      return finish<float>(task, divisor);
  }
}

}  // namespace trireme::kernels
