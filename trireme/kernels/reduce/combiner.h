#pragma once

// THE tree over several sources, a block after the other: what `combine` and reductions in parts
// are made of.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "trireme/kernels/reduce/merge_loops.h"

namespace trireme::kernels {

/// What a pass reads and writes, but for the types.
struct CombineTask {
  ReduceOp op = ReduceOp::kSum;
  std::span<const double> scales = {};
  std::span<const std::byte* const> sources = {};
  std::span<std::byte* const> targets = {};
  std::int64_t count = 0;
  Stores stores = Stores::kCached;
};

/// kInvalidArgument where a scaled sum has not as many scales as sources.
void check_scales(const ElementReduction& reduction, std::size_t num_sources);

/// Combines `Element`s and writes `Result`s: the same type, or what elements are combined in.
template <typename Element, ReduceOp Op, typename Result = Element>
class Combiner {
 public:
  /// divisor   of the sum, before it is rounded: of an average.
  Combiner(const CombineTask& task, std::int64_t divisor)
      : loops_(loops_here<Element, Op>()),
        narrow_(loops_here<Result, Op>().narrow),
        task_(task),
        divisor_(divisor) {}

  void run() {
    for (std::int64_t begin = 0; begin < task_.count; begin += kBlock) {
      begin_ = begin;
      length_ = std::min(kBlock, task_.count - begin);
      if (is_direct()) {
        if constexpr (std::is_same_v<Result, Sum>) {
          tree_into(0, num_sources(), reinterpret_cast<Sum*>(task_.targets[0]) + begin);
        }
      } else {
        write();
      }
    }
  }

 private:
  using Sum = Wide<Element>;
  static_assert(std::is_same_v<Sum, Wide<Result>>);

  static constexpr std::int64_t kBlock = 1024;  // elements: all levels' blocks stay in the L1 cache

  int num_sources() const { return static_cast<int>(task_.sources.size()); }

  /// Whether results may be combined in their place: they need nothing after that, and no source is
  /// read after a part of them is written.
  bool is_direct() const {
    return std::is_same_v<Result, Sum> && divisor_ == 1 && num_sources() <= kMaxSources &&
           task_.targets.size() == 1 && task_.stores == Stores::kCached;
  }

  void tree_into(int first, int count, Sum* target) {
    if (count <= kMaxSources) {
      Sources<Element, kMaxSources> part{};
      for (int s = 0; s < count; ++s) {
        part.elements[s] = reinterpret_cast<const Element*>(task_.sources[first + s]) + begin_;
        if constexpr (Op == ReduceOp::kScaledSum) {
          part.scales[s] = static_cast<Sum>(task_.scales[first + s]);
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

  void write() {
    alignas(64) std::array<Sum, kBlock> sum;
    tree_into(0, num_sources(), sum.data());
    if constexpr (std::is_floating_point_v<Sum>) {
      if (divisor_ != 1) {
        const Sum divisor = static_cast<Sum>(divisor_);
        for (std::int64_t i = 0; i < length_; ++i) sum[i] /= divisor;
      }
    }
    alignas(64) std::array<Result, kBlock> result;
    narrow_(sum.data(), result.data(), length_);
    const std::size_t bytes = static_cast<std::size_t>(length_) * sizeof(Result);
    for (std::byte* target : task_.targets) {
      std::byte* place = target + static_cast<std::size_t>(begin_) * sizeof(Result);
      const auto* from = reinterpret_cast<const std::byte*>(result.data());
      if (task_.stores == Stores::kStreaming) {
        copy_streaming(from, place, bytes);
      } else {
        std::memcpy(place, from, bytes);
      }
    }
  }

  MergeLoops<Element> loops_;
  void (*narrow_)(const Sum*, Result*, std::int64_t);
  CombineTask task_;
  std::int64_t divisor_;
  std::int64_t begin_ = 0;   ///< Of the block under way.
  std::int64_t length_ = 0;  ///< Likewise.
};

}  // namespace trireme::kernels
