#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// `node 7 'encoder/linear' (aten::linear)`.
std::string name_of(const graph::Node& node);

/// The two nodes agree in all that must not depend on the batch: all but their arguments.
bool same_call(const graph::Node& a, const graph::Node& b);

/// `graph` with every size fixed to what it is at `batch`.
graph::Graph at_batch(const graph::Graph& graph, std::int64_t batch);

/// The first difference between two graphs whose sizes are fixed, naming the node; empty if none.
std::string difference(const graph::Graph& recorded, const graph::Graph& now);

}  // namespace trireme::record
