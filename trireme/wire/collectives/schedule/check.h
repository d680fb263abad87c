#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {

/// What an element of a rank's data must be in the end.
struct Wanted {
  enum class Kind : std::uint8_t {
    kReduction,  ///< Of this element over all ranks.
    kCopy,       ///< What `rank` had in element `index` of `place`.
    kAllHeard,   ///< Anything that depends on all ranks.
  };

  Kind kind = Kind::kReduction;
  int rank = 0;
  Place place = Place::kData;
  std::int64_t index = 0;
};

/// Which result counts as the reduction.
enum class Bits : std::uint8_t {
  kAny,         ///< Every rank once, in any order, but the same formula on all ranks.
  kTree,        ///< THE tree over the ranks.
  kRoundedOnce  ///< As kTree, in one single reduction: what f16 and averages need.
};

/// What the schedules of a group are for.
struct Goal {
  std::vector<std::int64_t> data_elements;   ///< By rank.
  std::vector<std::int64_t> input_elements;  ///< By rank; empty: none.
  Bits bits = Bits::kTree;
  int num_reducers = 0;  ///< The last ranks, whose data enters nothing.
  std::function<Wanted(int rank, std::int64_t index)> wanted;
};

/// Goals of the operations, for `num_ranks` ranks with `count` elements each.
Goal all_reduce_goal(int num_ranks, std::int64_t count, Bits bits, int num_reducers = 0);
/// The data of ranks that get no result, here and below, must be left.
Goal reduce_goal(int num_ranks, std::int64_t count, int root);
Goal broadcast_goal(int num_ranks, std::int64_t count, int root);
Goal reduce_scatter_goal(std::int64_t count, std::span<const Chunk> parts, Bits bits);
Goal all_gather_goal(std::int64_t count, std::span<const Chunk> parts);
/// elements[i][j]   what rank i sends to rank j.
Goal all_to_all_goal(const std::vector<std::vector<std::int64_t>>& elements);
Goal barrier_goal(int num_ranks);

/// Proves, without a network, that `schedules` (one per group rank) reach `goal` whatever the
/// timing:
///
///   * ranges, peers and `after` are such as exist;
///   * two steps of a rank that use the same memory, one of them writing, never run at once;
///   * each send meets a recv of its size, and all of them end although none is buffered;
///   * nothing is read that was not written;
///   * every rank's data is as wanted.
///
/// Errors   kInvalidArgument, with the rank, the step and what is wrong.
/// Cost     elements x ranks formulas; steps^2 comparisons per rank.
void check_schedules(std::span<const Schedule> schedules, const Goal& goal);

}  // namespace trireme::collectives
