#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/host/arena.h"

namespace trireme::collectives {

/// One rank's part in the operations of a group whose ranks share an arena. Nothing is sent: a rank
/// writes to its part of the arena, says so by its progress, and reads the others'. All ranks go
/// through the same steps; a step is over when every rank's progress has reached its number.
///
/// Caller-synchronised. Blocking.
class HostRank {
 public:
  /// Called while others are late, some 20 times a second, with the group ranks that are: throws
  /// where waiting is of no use any more.
  using OnWait = std::function<void(const std::vector<int>& late)>;

  HostRank(Arena arena, int rank, transport::Patience patience, OnWait on_wait);

  int rank() const { return rank_; }
  int size() const { return arena_.num_ranks(); }

  /// data[i] = the reduction over the ranks' data[i]. Bits do not depend on the algorithm.
  ///
  /// Errors   kInvalidArgument, with the same text on all ranks, where they call different
  ///          operations; what `on_wait` throws.
  void all_reduce(const kernels::Reduction& reduction, std::span<std::byte> data);

  /// The same over buffers that all ranks see, without a copy: rank i combines part i of all of
  /// them and writes it into each.
  ///
  /// buffers   by rank, of one size; the same memory on all ranks.
  void all_reduce_shared(const kernels::Reduction& reduction,
                         std::span<const std::span<std::byte>> buffers);

  void barrier();

 private:
  /// What it is about to do, into the slot of this turn. description: without sequence and size.
  void begin(Description description);
  /// A step: says that this rank has done its part; waits until all have.
  void meet();
  void arrive();
  void wait_for_all();
  /// Throws where ranks are about to do different things.
  void compare() const;

  void begin_all_reduce(const kernels::Reduction& reduction, std::size_t bytes);
  void reduce_in_slots(const kernels::Reduction& reduction, std::span<std::byte> data);
  void reduce_one_shot(const kernels::Reduction& reduction, std::span<std::byte> data);
  void reduce_two_shot(const kernels::Reduction& reduction, std::span<std::byte> data);

  Arena arena_;
  int rank_;
  transport::Patience patience_;
  OnWait on_wait_;
  std::uint32_t steps_ = 0;      ///< That this rank has done.
  std::int64_t sequence_ = 0;    ///< Operations before this one.
  std::int64_t num_pieces_ = 0;  ///< Staged, in all operations: which half comes next.
};

}  // namespace trireme::collectives
