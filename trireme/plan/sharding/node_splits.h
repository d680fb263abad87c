#pragma once

#include <optional>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/split.h"

namespace trireme::sharding {

/// How a node runs in shards.
struct NodeSplits {
  Splits values;        ///< Of its inputs and outputs, those that are split.
  bool is_sum = false;  ///< The outputs of the shards are added up, and so are whole.
};

/// What follows for all values of a node from those of them that are split.
///
///     linear(x, w), w split by rows             -> its output by its last dimension, x whole
///     linear(x, w), x split by its last one     -> w by columns, a sum
///     matmul(q, k), q split by heads            -> k and the output by heads
///
/// known    has at least one value of the node.
/// Returns  nothing where the operator cannot be split so, or is not known.
std::optional<NodeSplits> node_splits(const graph::Graph& graph, const graph::Node& node,
                                      const Splits& known, int num_shards);

/// Changes sizes among the constants of a node to those of one shard.
///
/// node   one of which `splits` says how it runs; its values are those of the whole graph.
void make_local(graph::Node& node, const graph::Graph& graph, const NodeSplits& splits,
                int num_shards);

}  // namespace trireme::sharding
