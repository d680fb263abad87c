#pragma once

#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Ids of the values among the inputs of `node`, lists included, in order, repeats kept.
std::vector<ValueId> input_values(const Node& node);

/// Whether every stage gets such a value anew, as it was at first: batch, step scalars, constants.
bool is_outside(ValueSource source);

/// Position of each node in the execution order.
std::unordered_map<NodeId, int> node_positions(const Graph& graph);

/// What happens to a piece of memory in the course of the graph.
struct StorageHistory {
  static constexpr int kNever = -2;
  static constexpr int kBatch = -1;  ///< Produced before the first node, as part of the batch.

  /// First position at which one of its values is produced, by a node or as an input; kNever where
  /// it is only a parameter's, a buffer's or a constant's.
  int first_production = kNever;
  ValueId first_value = -1;  ///< The value produced there.
  std::vector<int> writes;   ///< Positions of nodes that write to it, ascending.
  std::vector<int> strided;  ///< Positions of `aten::as_strided*` nodes that view it, ascending.
};

/// History by storage id. Cost linear in nodes and arguments.
std::unordered_map<int, StorageHistory> storage_histories(const Graph& graph);

}  // namespace trireme::graph
