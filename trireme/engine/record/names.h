#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Names each node after the module of the first parameter it takes (or of the node before, where
/// it takes none) and its operator: `decoder.3.query/linear`, a second one `.../linear#2`.
void name_nodes(graph::Graph& graph);

/// `decoder.3.query` of `decoder.3.query.weight`.
std::string module_of(const std::string& tensor_name);

}  // namespace trireme::record
