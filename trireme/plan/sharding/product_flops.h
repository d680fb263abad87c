#pragma once

#include <cstdint>

#include "trireme/plan/graph/graph.h"

namespace trireme::sharding {

/// Floating-point operations of a node's forward in products and convolutions, two for each pair that is multiplied and added; 0 of
/// other nodes. Its backward has twice as many.
double product_flops(const graph::Graph& graph, const graph::Node& node, std::int64_t microbatch);

}  // namespace trireme::sharding
