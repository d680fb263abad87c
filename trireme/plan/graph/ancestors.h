#pragma once

#include <span>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::graph {

/// Positions of the nodes that compute `values` and nothing else, in execution order. Nodes that
/// write into memory of one of them are among them. Cost linear in nodes and arguments.
std::vector<int> ancestors(const Graph& graph, std::span<const ValueId> values);

}  // namespace trireme::graph
