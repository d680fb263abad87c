#include "trireme/kernels/reduce/combine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "trireme/error.h"
#include "trireme/kernels/reduce/merge_loops.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace trireme::kernels {
namespace {

constexpr std::array<std::string_view, 10> kOps = {
    "sum", "average", "product", "min", "max", "and", "or", "xor", "scaled_sum", "rounded_sum"};

constexpr std::int64_t kBlock = 1024;  // elements: the blocks of all levels stay in the L1 cache

/// THE tree over sources for one element type and operation, a block after the other.
template <typename Element, ReduceOp Op>
class Combiner {
 public:
  Combiner(std::span<const std::byte* const> sources, std::span<const double> scales,
           std::int64_t average_of)
      : loops_(loops_here<Element, Op>()),
        sources_(sources),
        scales_(scales),
        average_of_(average_of) {}

  void run(std::span<std::byte* const> targets, std::int64_t count, Stores stores) {
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      begin_ = begin;
      length_ = std::min(kBlock, count - begin);
      if (targets.size() == 1 && stores == Stores::kCached && is_direct()) {
        if constexpr (std::is_same_v<Element, Wide<Element>>) {
          tree_into(0, num_sources(), reinterpret_cast<Element*>(targets[0]) + begin);
        }
      } else {
        write(targets, stores);
      }
    }
  }

 private:
  using Sum = Wide<Element>;

  int num_sources() const { return static_cast<int>(sources_.size()); }

  /// Whether results may be combined in their place: they need nothing after that, and no source is
  /// read after a part of them is written.
  bool is_direct() const {
    return std::is_same_v<Element, Sum> && average_of_ == 1 && num_sources() <= kMaxSources;
  }

  void tree_into(int first, int count, Sum* target) {
    if (count <= kMaxSources) {
      Sources<Element, kMaxSources> part{};
      for (int s = 0; s < count; ++s) {
        part.elements[s] = reinterpret_cast<const Element*>(sources_[first + s]) + begin_;
        if constexpr (Op == ReduceOp::kScaledSum) {
          part.scales[s] = static_cast<Sum>(scales_[first + s]);
        }
      }
      loops_.tree[count - 1](part, target, length_);
      return;
    }
    const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1));
    tree_into(first, left, target);
    alignas(64) std::array<Sum, kBlock> right;
    tree_into(first + left, count - left, right.data());
    loops_.merge(target, right.data(), length_);
  }

  void write(std::span<std::byte* const> targets, Stores stores) {
    alignas(64) std::array<Sum, kBlock> sum;
    tree_into(0, num_sources(), sum.data());
    if constexpr (std::is_floating_point_v<Sum>) {
      if (average_of_ != 1) {
        const Sum divisor = static_cast<Sum>(average_of_);
        for (std::int64_t i = 0; i < length_; ++i) sum[i] /= divisor;
      }
    }
    alignas(64) std::array<Element, kBlock> result;
    loops_.narrow(sum.data(), result.data(), length_);
    const std::size_t bytes = static_cast<std::size_t>(length_) * sizeof(Element);
    for (std::byte* target : targets) {
      std::byte* place = target + static_cast<std::size_t>(begin_) * sizeof(Element);
      const auto* from = reinterpret_cast<const std::byte*>(result.data());
      if (stores == Stores::kStreaming) {
        copy_streaming(from, place, bytes);
      } else {
        std::memcpy(place, from, bytes);
      }
    }
  }

  MergeLoops<Element> loops_;
  std::span<const std::byte* const> sources_;
  std::span<const double> scales_;
  std::int64_t average_of_;
  std::int64_t begin_ = 0;   ///< Of the block under way.
  std::int64_t length_ = 0;  ///< Likewise.
};

/// Everything that `combine` is told but for the type.
struct Task {
  ReduceOp op;
  std::span<const double> scales;
  std::span<const std::byte* const> sources;
  std::span<std::byte* const> targets;
  std::int64_t count;
  Stores stores;
};

template <typename Element, ReduceOp Op>
void run(const Task& task, std::int64_t average_of = 1) {
  Combiner<Element, Op> combiner(task.sources, task.scales, average_of);
  combiner.run(task.targets, task.count, task.stores);
}

template <typename Element>
void run_arithmetic(const Task& task) {
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
void run_bitwise(const Task& task) {
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
void run_whole(const Task& task) {
  is_bitwise(task.op) ? run_bitwise<Element>(task) : run_arithmetic<Element>(task);
}

void run_bool(Task task) {
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

void combine(const ElementReduction& reduction, std::span<const std::byte* const> sources,
             std::span<std::byte* const> targets, std::int64_t count, Stores stores) {
  if (!is_reducible(reduction.dtype, reduction.op) || sources.empty() || targets.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot combine " + std::to_string(sources.size()) + " sources of " +
                    std::string(trireme::to_text(reduction.dtype)) + " by " +
                    std::string(to_text(reduction.op)) + " into " + std::to_string(targets.size()) +
                    " targets");
  }
  if (reduction.op == ReduceOp::kScaledSum && reduction.scales.size() != sources.size()) {
    throw Error(ErrorKind::kInvalidArgument, "a scaled sum of " + std::to_string(sources.size()) +
                                                 " sources needs as many scales, got " +
                                                 std::to_string(reduction.scales.size()));
  }
  const Task task{reduction.op, reduction.scales, sources, targets, count, stores};
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
