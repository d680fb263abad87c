#include "trireme/wire/collectives/schedule/check.h"

namespace trireme::collectives {
namespace {

using Kind = Wanted::Kind;

CollectiveGoal goal_of(int num_ranks, std::int64_t count, Bits bits) {
  CollectiveGoal goal;
  goal.data_elements.assign(num_ranks, count);
  goal.bits = bits;
  return goal;
}

Wanted unchanged(int rank, std::int64_t index) {
  return {.kind = Kind::kCopy, .rank = rank, .index = index};
}

bool has(const Chunk& chunk, std::int64_t index) {
  return index >= chunk.begin && index < chunk.end;
}

}  // namespace

CollectiveGoal all_reduce_goal(int num_ranks, std::int64_t count, Bits bits, int num_reducers) {
  CollectiveGoal goal = goal_of(num_ranks, count, bits);
  goal.num_reducers = num_reducers;
  const int num_with_data = num_ranks - num_reducers;
  goal.wanted = [num_with_data](int rank, std::int64_t index) {
    return rank < num_with_data ? Wanted{.kind = Kind::kReduction} : unchanged(rank, index);
  };
  return goal;
}

CollectiveGoal reduce_goal(int num_ranks, std::int64_t count, int root, Bits bits) {
  CollectiveGoal goal = goal_of(num_ranks, count, bits);
  goal.wanted = [root](int rank, std::int64_t index) {
    return rank == root ? Wanted{.kind = Kind::kReduction} : unchanged(rank, index);
  };
  return goal;
}

CollectiveGoal broadcast_goal(int num_ranks, std::int64_t count, int root) {
  CollectiveGoal goal = goal_of(num_ranks, count, Bits::kTree);
  goal.wanted = [root](int, std::int64_t index) { return unchanged(root, index); };
  return goal;
}

CollectiveGoal reduce_scatter_goal(std::int64_t count, std::span<const Chunk> parts, Bits bits) {
  CollectiveGoal goal = goal_of(static_cast<int>(parts.size()), count, bits);
  const std::vector<Chunk> owned(parts.begin(), parts.end());
  goal.wanted = [owned](int rank, std::int64_t index) {
    return has(owned[rank], index) ? Wanted{.kind = Kind::kReduction} : unchanged(rank, index);
  };
  return goal;
}

CollectiveGoal all_gather_goal(std::int64_t count, std::span<const Chunk> parts) {
  CollectiveGoal goal = goal_of(static_cast<int>(parts.size()), count, Bits::kTree);
  const std::vector<Chunk> owned(parts.begin(), parts.end());
  goal.wanted = [owned](int rank, std::int64_t index) {
    for (std::size_t i = 0; i < owned.size(); ++i) {
      if (has(owned[i], index)) return unchanged(static_cast<int>(i), index);
    }
    return unchanged(rank, index);
  };
  return goal;
}

CollectiveGoal all_to_all_goal(const std::vector<std::vector<std::int64_t>>& elements) {
  CollectiveGoal goal;
  const std::size_t num_ranks = elements.size();
  goal.data_elements.assign(num_ranks, 0);
  goal.input_elements.assign(num_ranks, 0);
  std::vector<std::vector<Wanted>> wanted(num_ranks);
  for (std::size_t from = 0; from < num_ranks; ++from) {
    std::int64_t index = 0;
    for (std::size_t to = 0; to < num_ranks; ++to) {
      for (std::int64_t i = 0; i < elements[from][to]; ++i) {
        wanted[to].push_back({.kind = Kind::kCopy,
                              .rank = static_cast<int>(from),
                              .place = Place::kInput,
                              .index = index++});
      }
      goal.data_elements[to] += elements[from][to];
    }
    goal.input_elements[from] = index;
  }
  goal.wanted = [wanted](int rank, std::int64_t index) { return wanted[rank][index]; };
  return goal;
}

CollectiveGoal barrier_goal(int num_ranks) {
  CollectiveGoal goal = goal_of(num_ranks, 1, Bits::kAny);
  goal.wanted = [](int, std::int64_t) { return Wanted{.kind = Kind::kAllHeard}; };
  return goal;
}

}  // namespace trireme::collectives
