#pragma once

// How the kernels of this folder are written. A kernel is a list of passes. A pass is a struct that
// holds pointers and sizes; pass(i) computes what index i is to compute, and no index reads what
// another one of the same pass writes. So a pass may run in any order, or all at once:
//
//     struct Scale {
//       float factor;
//       float* x;
//       TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { x[i] *= factor; }
//     };
//
//     template <typename Each>                        // each(n, pass): pass(i) for all i < n
//     void scale_passes(float factor, float* x, std::int64_t n, const Each& each) {
//       each(n, Scale{factor, x});
//     }
//
// x_passes.h has the list, x.cu runs it with OnStream (launch.cuh), one thread for each index.
// Tests run it on the host, indices in order, reversed and shuffled, and compare bits with the
// kernels for processors: formulas, indices and workspace are so tested without a GPU.
//
// Where a pass needs what it did just before, it has steps: each.steps(sizes, pass) calls
// pass(group, step, i), all i of a step in any order, but after the steps before it. OnStream gives
// a group a block of threads, with a barrier between steps.
//
// Sums go through the workspace: many indices add few elements each, in a stated order, and a later
// pass adds those. No atomic additions of reals, so results repeat, and sums have the processors'
// order. Whole numbers that indices of one pass change together go through atomics.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/host_device.h"

namespace trireme::kernels::cuda::internal {

/// Of each.steps.
struct StepSizes {
  std::int64_t num_groups, num_steps, num_indices;
};

/// i = quotient * divisor + rest. GPUs divide 64 bits slowly.
struct Quotient {
  std::int64_t quotient, rest;
};

TRIREME_HOST_DEVICE inline Quotient divide(std::int64_t i, std::int64_t divisor) {
  const auto small_i = static_cast<std::uint32_t>(i), small = static_cast<std::uint32_t>(divisor);
  if (small_i != i || small != divisor) return {i / divisor, i % divisor};
  return {small_i / small, small_i % small};
}

constexpr std::int64_t count_parts(std::int64_t n, std::int64_t part) {
  return (n + part - 1) / part;
}

/// The tree over 16 sums: neighbours of 1, then of 2, 4 and 8 (reduce/tree.h).
template <typename T>
TRIREME_HOST_DEVICE T tree_of_16(T* sums) {
  for (int stride = 1; stride < 16; stride *= 2) {
    for (int lane = 0; lane < 16; lane += 2 * stride) sums[lane] += sums[lane + stride];
  }
  return sums[0];
}

/// A workspace, handed out from its front. Without memory it counts.
class Cutter {
 public:
  Cutter() = default;
  explicit Cutter(std::span<std::byte> memory) : begin_(memory.data()) {}

  template <typename T>
  T* take(std::int64_t n) {
    T* part = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + bytes_);
    bytes_ += count_parts(n * static_cast<std::int64_t>(sizeof(T)), kAlignment) * kAlignment;
    return part;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 16;
  std::byte* begin_ = nullptr;
  std::int64_t bytes_ = 0;
};

inline void check_workspace(const char* operation, std::span<std::byte> workspace,
                            std::int64_t bytes) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(workspace.data()) % 16 == 0;
  if (std::ssize(workspace) >= bytes && is_aligned) return;
  throw Error(ErrorKind::kInvalidArgument,
              std::string(operation) + ": a workspace of " + std::to_string(workspace.size()) +
                  " bytes, expected " + std::to_string(bytes) + ", aligned to 16");
}

}  // namespace trireme::kernels::cuda::internal
