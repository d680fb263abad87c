#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Ancestors of many values of one graph, few of each: as `ancestors`, without a walk through the whole graph.
///
/// Immutable; refers to the graph.
class AncestorFinder {
 public:
  /// Cost: linear in the graph.
  explicit AncestorFinder(const Graph& graph);

  /// Positions, ascending, of the nodes that the value needs; nothing where they are more than `most`.
  ///
  /// Cost: nodes that touch the memory of what these take.
  std::optional<std::vector<int>> find(ValueId value, std::size_t most) const;

 private:
  const Graph& graph_;
  /// By storage: positions of the nodes that make a value in it or write to it, ascending.
  std::unordered_map<int, std::vector<int>> touching_;
};

}  // namespace trireme::graph
