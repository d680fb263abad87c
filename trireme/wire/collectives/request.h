#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::collectives {

/// How the elements of the ranks become one, as one rank calls it.
struct Reduce {
  kernels::ReduceOp op = kernels::ReduceOp::kSum;
  double scale = 1;

  Reduce() = default;
  Reduce(kernels::ReduceOp of) : op(of) {}
  Reduce(kernels::ReduceOp of, double own_scale) : op(of), scale(own_scale) {}
};

/// Each rank's elements times its own scale, then the sum: a weighted average where the scales are
/// each rank's share. Of f64, f32, f16 and bf16.
///
/// scale   finite; rounded to the type in which elements are combined (f32, or f64 for f64).
inline Reduce scaled_sum(double scale) { return {kernels::ReduceOp::kScaledSum, scale}; }

/// A call of an operation: what, and on which memory of this rank. Memory is lent until the work
/// ends.
struct Request {
  Description description;  ///< Without sequence and group size, which are filled in.

  double scale = 1;  ///< Of a scaled sum, of this rank's elements.

  /// Of this call, from where those before it have ended; nothing: the group's.
  std::optional<std::chrono::milliseconds> deadline = {};

  /// The buffer of operations that reduce; the bytes of a broadcast; all ranks' bytes of an
  /// all_gather.
  Elements data{{}, Dtype::kU8};

  /// By rank: elements of `data` that are its own (reduce_scatter, all_gather).
  std::vector<Chunk> parts = {};

  /// Where a reduce_scatter puts this rank's part, and leaves `data`; empty: to its place in `data`.
  std::span<std::byte> result = {};

  /// What this rank gives to an all_gather, where it is not in its place yet.
  std::span<const std::byte> mine = {};

  /// By rank: what goes to it and what comes from it (all_to_all, gather, scatter).
  std::vector<std::span<const std::byte>> sends = {};
  std::vector<std::span<std::byte>> recvs = {};

  /// Of this rank's buffers, one direction.
  std::size_t bytes() const {
    std::size_t bytes = data.bytes.size();
    for (const auto& part : sends) bytes += part.size();
    return bytes;
  }
};

/// How a group's operations are done: over memory that all its ranks share, or by messages.
///
/// Threads  `submit` and `allocate` from one thread at a time, the rest from any.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Operations are done in the order of the calls. Errors reach the work.
  virtual transport::WorkPtr submit(Request request) = 0;

  /// Memory of this rank that is best for operations, until the backend ends. Every rank calls it;
  /// blocks.
  virtual std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) = 0;

  /// World ranks for which the operation under way waits at the moment, in order.
  virtual std::vector<int> missing() const = 0;
};

}  // namespace trireme::collectives
