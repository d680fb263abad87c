#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Names each node after the module of the first parameter it takes (or of the node before, where
/// it takes none) and its operator: `decoder.3.query/linear`, a second one `.../linear#2`.
void name_nodes(graph::Graph& graph);

/// `decoder.3.query` of `decoder.3.query.weight`.
std::string module_of(const std::string& tensor_name);

/// `node 7 'encoder/linear' (aten::linear)`.
std::string name_of(const graph::Node& node);

/// The two nodes agree in all that must not depend on the batch: all but their arguments.
bool same_call(const graph::Node& a, const graph::Node& b);

/// `graph` with every size fixed to what it is at `batch`.
graph::Graph at_batch(const graph::Graph& graph, std::int64_t batch);

/// The first difference between two graphs whose sizes are fixed, naming the node; empty if none.
std::string difference(const graph::Graph& recorded, const graph::Graph& now);

}  // namespace trireme::record
