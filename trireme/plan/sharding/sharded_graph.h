#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/split.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::sharding {

// Opaque functions that the graph of a process calls; engine/shard makes them.

/// Shards' partial results, one input each -> their sum over all S shards.
inline constexpr std::string_view kSumOfShards = "sum over shards";
/// The same of maxima; without a gradient.
inline constexpr std::string_view kMaximumOfShards = "maximum over shards";
/// A whole value -> itself for each shard here; their gradients are summed over all S shards.
inline constexpr std::string_view kGivenToShards = "given to shards";

/// A parameter's part in one shard.
struct ParameterPart {
  std::string name;           ///< `blocks.0.up.weight[1/2]`: part 1 of 2, counted from 0.
  graph::ValueId value = -1;  ///< In the graph of the process.
  int parameter = -1;         ///< Index in Graph::parameters of the whole graph.
  int shard = 0;              ///< Of all S.
};

/// What a process runs.
struct ShardedGraph {
  graph::Graph graph;
  std::vector<ParameterPart> parts;  ///< By parameter, then shard.
  std::vector<HaloExchange> halos;   ///< Functions that the graph calls beside those above.
};

/// `name[shard/num_shards]`.
std::string part_name(const std::string& name, int shard, int num_shards);

/// kInvalidArgument where `sharding` is not of this graph, or splits what does not divide.
void check(const Sharding& sharding, const graph::Graph& graph);

/// The graph of the shards `range`: a node that is split runs once for each of them, on values of its part; all others run once.
///
///     up = mm(x, w1); h = relu(up); y = mm(h, w2)                    w1 by columns, w2 by rows, both shards
///     -> x0, x1 = given to shards(x); up0 = mm(x0, w1[0/2]); up1 = mm(x1, w1[1/2]); h0 = relu(up0); h1 = relu(up1)
///        y0 = mm(h0, w2[0/2]); y1 = mm(h1, w2[1/2]); y = sum over shards(y0, y1)
///
/// Of a table of which shards have rows each looks up its own, and of a cross entropy each sums over its classes
/// (vocabulary_nodes.h). Of a product with a bias that is added up the bias is added to the sum. The mask of a dropout is drawn as the whole
/// graph draws it, once, and shards take their parts of it: masks do not depend on S. Whole nodes keep their ids, and
/// the first shard here has those of split ones.
///
/// Of tiles see tiled_graph.h. With one shard the graph itself. Cost linear in nodes, arguments and `range.count`.
/// Errors   those of `check`; kInvalidArgument where `range` is not within the shards.
ShardedGraph sharded_graph(const graph::Graph& graph, const Sharding& sharding, ShardRange range);

}  // namespace trireme::sharding
