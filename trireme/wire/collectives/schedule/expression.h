#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

  /// The ranks of the leaves, by how often they occur, and whether all leaves are element `index`
  /// of the data.
  /// How many leaves are of each rank.
  std::vector<int> count_ranks(Id id, int num_ranks) const;
  /// Whether all leaves are element `index` of the data.
  bool is_of_element(Id id, std::int64_t index) const;

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

}  // namespace trireme::collectives
