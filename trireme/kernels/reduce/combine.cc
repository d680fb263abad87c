#include "trireme/kernels/reduce/combine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "trireme/error.h"
#include "trireme/kernels/reduce/combiner.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace trireme::kernels {
namespace {

constexpr std::array<std::string_view, 10> kOps = {
    "sum", "average", "product", "min", "max", "and", "or", "xor", "scaled_sum", "rounded_sum"};

template <typename Element, ReduceOp Op>
void run(const CombineTask& task, std::int64_t average_of = 1) {
  Combiner<Element, Op>(task, average_of).run();
}

template <typename Element>
void run_arithmetic(const CombineTask& task) {
  if constexpr (std::is_floating_point_v<Wide<Element>>) {
    if (task.op == ReduceOp::kScaledSum) return run<Element, ReduceOp::kScaledSum>(task);
  }
  if constexpr (!std::is_same_v<Element, Wide<Element>>) {
    if (task.op == ReduceOp::kRoundedSum) return run<Element, ReduceOp::kRoundedSum>(task);
  }
  switch (task.op) {
    case ReduceOp::kProduct:
      return run<Element, ReduceOp::kProduct>(task);
    case ReduceOp::kMin:
      return run<Element, ReduceOp::kMin>(task);
    case ReduceOp::kMax:
      return run<Element, ReduceOp::kMax>(task);
    case ReduceOp::kAverage:
      return run<Element, ReduceOp::kSum>(task, static_cast<std::int64_t>(task.sources.size()));
    default:
      return run<Element, ReduceOp::kSum>(task);
  }
}

template <typename Element>
void run_bitwise(const CombineTask& task) {
  switch (task.op) {
    case ReduceOp::kAnd:
      return run<Element, ReduceOp::kAnd>(task);
    case ReduceOp::kOr:
      return run<Element, ReduceOp::kOr>(task);
    default:
      return run<Element, ReduceOp::kXor>(task);
  }
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor;
}

template <typename Element>
void run_whole(const CombineTask& task) {
  is_bitwise(task.op) ? run_bitwise<Element>(task) : run_arithmetic<Element>(task);
}

void run_bool(CombineTask task) {
  if (task.op == ReduceOp::kSum || task.op == ReduceOp::kMax) task.op = ReduceOp::kOr;
  if (task.op == ReduceOp::kProduct || task.op == ReduceOp::kMin) task.op = ReduceOp::kAnd;
  run_bitwise<Bool>(task);
}

}  // namespace

std::string_view to_text(ReduceOp op) { return kOps[static_cast<std::size_t>(op)]; }

bool is_reducible(Dtype dtype, ReduceOp op) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kF32:
    case Dtype::kF16:
    case Dtype::kBf16:
      return !is_bitwise(op);
    case Dtype::kI64:
    case Dtype::kI32:
    case Dtype::kI16:
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kBool:
      return op != ReduceOp::kAverage && op != ReduceOp::kScaledSum && op != ReduceOp::kRoundedSum;
    default:
      return false;
  }
}

void check_scales(const ElementReduction& reduction, std::size_t num_sources) {
  if (reduction.op != ReduceOp::kScaledSum || reduction.scales.size() == num_sources) return;
  throw Error(ErrorKind::kInvalidArgument, "a scaled sum of " + std::to_string(num_sources) +
                                               " sources needs as many scales, got " +
                                               std::to_string(reduction.scales.size()));
}

void combine(const ElementReduction& reduction, std::span<const std::byte* const> sources,
             std::span<std::byte* const> targets, std::int64_t count, Stores stores) {
  if (!is_reducible(reduction.dtype, reduction.op) || sources.empty() || targets.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot combine " + std::to_string(sources.size()) + " sources of " +
                    std::string(trireme::to_text(reduction.dtype)) + " by " +
                    std::string(to_text(reduction.op)) + " into " + std::to_string(targets.size()) +
                    " targets");
  }
  check_scales(reduction, sources.size());
  const CombineTask task{reduction.op, reduction.scales, sources, targets, count, stores};
  switch (reduction.dtype) {
    case Dtype::kF64:
      return run_arithmetic<double>(task);
    case Dtype::kF32:
      return run_arithmetic<float>(task);
    case Dtype::kF16:
      return run_arithmetic<F16>(task);
    case Dtype::kBf16:
      return run_arithmetic<Bf16>(task);
    case Dtype::kI64:
      return run_whole<std::int64_t>(task);
    case Dtype::kI32:
      return run_whole<std::int32_t>(task);
    case Dtype::kI16:
      return run_whole<std::int16_t>(task);
    case Dtype::kI8:
      return run_whole<std::int8_t>(task);
    case Dtype::kU8:
      return run_whole<std::uint8_t>(task);
    default:
      return run_bool(task);
  }
}

#if defined(__x86_64__)
void copy_streaming(const std::byte* source, std::byte* target, std::size_t bytes) {
  constexpr std::size_t kVector = 16;
  const std::size_t head =
      std::min(bytes, (kVector - reinterpret_cast<std::uintptr_t>(target) % kVector) % kVector);
  std::memcpy(target, source, head);
  std::size_t done = head;
  for (; done + kVector <= bytes; done += kVector) {
    const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done));
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + done), value);
  }
  std::memcpy(target + done, source + done, bytes - done);
  _mm_sfence();  // streaming stores are not ordered with the flag that says they are done
}
#else
void copy_streaming(const std::byte* source, std::byte* target, std::size_t bytes) {
  std::memcpy(target, source, bytes);
}
#endif

}  // namespace trireme::kernels
