#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/wire/collectives/chunk.h"
#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {

/// What an element holds, as a formula over what the ranks began with. Equal formulas have the same
/// number.
///
/// Threads  caller-synchronised.
class Expressions {
 public:
  using Id = int;
  static constexpr Id kUnwritten = -1;  ///< Scratch that no step has written.

  /// What `rank` has in element `index` of `place` at the start.
  Id leaf(int rank, Place place, std::int64_t index);

  /// The result of one reduction of `sources`: combined by THE tree, rounded once.
  Id reduced(const std::vector<Id>& sources);

  /// As `reduced` without rounding, so that parts may be combined further with the same result.
  Id merged(const std::vector<Id>& sources);

  /// How many leaves are of each rank.
  std::vector<int> count_ranks(Id id, int num_ranks) const;
  /// Whether all leaves are element `index` of the data.
  bool is_of_element(Id id, std::int64_t index) const;
  /// Whether it is what `rank` has in an element of the data at the start.
  bool is_leaf_of(Id id, int rank) const;

  /// `((0:5+1:5)+2:5)` for element 5 of ranks 0, 1 and 2.
  std::string text(Id id) const;

 private:
  struct Node {
    int rank = -1;  ///< Of a leaf.
    Place place = Place::kData;
    std::int64_t index = 0;  ///< Of a leaf.
    Id left = -1;            ///< Of a merge, and what is rounded.
    Id right = -1;
    auto operator<=>(const Node&) const = default;
  };

  Id id_of(const Node& node);
  template <typename Visit>
  void for_leaves(Id id, Visit visit) const;

  std::vector<Node> nodes_;
  std::map<Node, Id> ids_;
};

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
  kRoundedOnce  ///< As kTree, and nothing but partial results before: what f16 and averages need.
};

/// What the schedules of a group are for.
struct CollectiveGoal {
  std::vector<std::int64_t> data_elements;   ///< By rank.
  std::vector<std::int64_t> input_elements;  ///< By rank; empty: none.
  Bits bits = Bits::kTree;
  int num_reducers = 0;  ///< The last ranks, whose data enters nothing.
  std::function<Wanted(int rank, std::int64_t index)> wanted;
};

/// Goals of the operations, for `num_ranks` ranks with `count` elements each.
CollectiveGoal all_reduce_goal(int num_ranks, std::int64_t count, Bits bits, int num_reducers = 0);
/// The data of ranks that get no result, here and below, must be left.
CollectiveGoal reduce_goal(int num_ranks, std::int64_t count, int root,
                           Bits bits = Bits::kRoundedOnce);
CollectiveGoal broadcast_goal(int num_ranks, std::int64_t count, int root);
CollectiveGoal reduce_scatter_goal(std::int64_t count, std::span<const Chunk> parts, Bits bits);
CollectiveGoal all_gather_goal(std::int64_t count, std::span<const Chunk> parts);
/// elements[i][j]   what rank i sends to rank j.
CollectiveGoal all_to_all_goal(const std::vector<std::vector<std::int64_t>>& elements);
CollectiveGoal barrier_goal(int num_ranks);

/// Proves, without a network, that `schedules` (one per group rank) reach `goal` whatever the
/// timing:
///
///   * ranges, peers and `after` are such as exist;
///   * two steps of a rank that use the same memory, one of them writing, never run at once;
///   * each send meets a recv of its size, partial results such as are, and all of them end although none is buffered;
///   * nothing is read that was not written;
///   * every rank's data is as wanted.
///
/// Errors   kInvalidArgument, with the rank, the step and what is wrong.
/// Cost     elements x ranks formulas; steps^2 comparisons per rank.
void check_schedules(std::span<const CollectiveSchedule> schedules, const CollectiveGoal& goal);

}  // namespace trireme::collectives
