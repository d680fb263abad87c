#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/transport/endpoint.h"
#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

struct GroupOptions {
  std::string name;      ///< For messages: `data 1`.
  std::uint64_t id = 0;  ///< Differs between the groups of a world; part of the tags.
  /// Of an operation: from its call, or from the end of the one before where that is later.
  std::chrono::milliseconds deadline{300'000};
};

/// Ranks of a world that run collectives together.
///
/// Operations of a group run one after another, in the order of the calls, which must be the same
/// on all its ranks; each message says which operation it is of, and one of another kind, dtype or
/// count fails with kInvalidArgument on both sides, naming both. Sums are combined in one order: by
/// kernels::tree_merges over group ranks, whatever size, chunk or timing.
///
/// Errors   an operation beyond the deadline poisons the world with kTimeout, naming who is
/// missing.
///
/// Threads  calls from one thread at a time, `missing` from any; a thread of the group's own works.
class Group {
 public:
  /// endpoint   outlives the group. ranks: world ranks in group order; this rank among them.
  Group(transport::Endpoint& endpoint, std::vector<int> ranks, GroupOptions options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const;
  int group_rank() const;
  const std::vector<int>& ranks() const;
  transport::Endpoint& endpoint() const;
  std::chrono::milliseconds deadline() const;

  /// World ranks for which the operation under way waits at the moment, in order.
  std::vector<int> missing() const;

  /// data = sum over ranks of data, in place. Two hops; each rank sends 2(n-1)/n of the buffer and
  /// holds (n-1)/n of it as scratch.
  transport::WorkPtr all_reduce(std::span<float> data);
  transport::WorkPtr all_reduce(std::span<double> data);

  /// As the first hop of all_reduce: this rank's chunk_of `data` becomes the sum, the rest is left.
  transport::WorkPtr reduce_scatter(std::span<float> data);
  transport::WorkPtr reduce_scatter(std::span<double> data);

  /// all[i * mine.size() ...] = what rank i gave. all: size() x mine.size() bytes, equal on all.
  transport::WorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all);

  /// data = the root's data.
  transport::WorkPtr broadcast(std::span<std::byte> data, int root_group_rank);

  transport::WorkPtr barrier();

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// An operation of `group`, for whoever waits for it: with a second beyond the deadline, so that
/// the group, which knows who is missing, is the first to say so.
transport::Awaited group_work(transport::Work& work, const Group& group);

}  // namespace trireme::collectives
