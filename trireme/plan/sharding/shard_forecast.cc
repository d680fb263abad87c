#include "trireme/plan/sharding/shard_forecast.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/sharding/dimension_map.h"
#include "trireme/plan/sharding/product_flops.h"
#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/tile_rules.h"

namespace trireme::sharding {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

/// Of a node's work, what the shard with most of it has.
double share_of(const Graph& graph, const Node& node, const Sharding& sharding) {
  if (is_dropout(node) && node.flags.random) return 1;
  std::vector<ValueId> values = graph::input_values(node);
  values.insert(values.begin(), node.outputs.begin(), node.outputs.end());
  for (const ValueId value : values) {
    const auto split = sharding.splits.find(value);
    if (split == sharding.splits.end()) continue;
    if (sharding.kind == SplitKind::kTensors) return 1.0 / sharding.num_shards;
    const std::int64_t extent = graph.values[value].shape[split->second.dim].fixed;
    const std::int64_t most = (extent + sharding.num_shards - 1) / sharding.num_shards;
    return static_cast<double>(most) / static_cast<double>(extent);
  }
  return 1;
}

/// Whether a node of tiles runs whole, on what is put together.
bool is_put_together(const Graph& graph, const Node& node, const Sharding& sharding) {
  if (sharding.kind != SplitKind::kTiles) return false;
  const bool makes_split =
      std::ranges::any_of(node.outputs, [&](ValueId id) { return sharding.splits.contains(id); });
  if (makes_split) return false;
  const auto rule = tile_rule(graph, node, sharding.splits, sharding.num_shards);
  return !rule || rule->output_dim >= 0;
}

double all_reduce_seconds(const ShardCosts& costs, std::int64_t bytes, int num_ranks) {
  const double ring =
      2 * (num_ranks - 1) * costs.message_seconds((bytes + num_ranks - 1) / num_ranks);
  const auto rounds = static_cast<double>(std::bit_width(static_cast<unsigned>(num_ranks - 1)));
  return std::min(ring, rounds * costs.message_seconds(bytes));
}

class Forecaster {
 public:
  Forecaster(const Graph& graph, const Sharding& sharding, const ShardCosts& costs)
      : graph_(graph), sharding_(sharding), costs_(costs) {}

  ShardForecast run() {
    for (std::size_t position = 0; position < graph_.nodes.size(); ++position) {
      const Node& node = graph_.nodes[position];
      const double seconds = costs_.node_seconds[position];
      const bool is_whole = is_put_together(graph_, node, sharding_);
      result_.whole_seconds += seconds;
      result_.compute_seconds += is_whole ? seconds : seconds * share_of(graph_, node, sharding_);
    }
    const ShardedGraph shard = sharded_graph(graph_, sharding_, {0, 1});
    for (const HaloExchange& halo : shard.halos) halos_[halo.name] = &halo;
    for (const Node& node : shard.graph.nodes) {
      if (node.op == "opaque") add_messages(shard.graph, node);
    }
    return result_;
  }

 private:
  void add_messages(const Graph& shard, const Node& node) {
    const graph::Value& value = shard.values[node.outputs.front()];
    const std::int64_t bytes = graph::bytes_at(value, costs_.microbatch);
    const bool is_forward = node.overload == kSumOfShards || node.overload == kMaximumOfShards;
    if (is_forward || (node.overload == kGivenToShards && value.requires_grad)) {
      ++result_.num_sums;
      result_.sum_seconds += all_reduce_seconds(costs_, bytes, sharding_.num_shards);
    }
    const auto halo = halos_.find(node.overload);
    if (halo == halos_.end()) return;
    const std::int64_t of_row = bytes / value.shape[halo->second->dim].fixed;
    ++result_.num_halos;
    result_.halo_seconds +=
        (value.requires_grad ? 2 : 1) *
        costs_.message_seconds(of_row *
                               most_rows_of_others(halo->second->wanted, halo->second->extent));
  }

  const Graph& graph_;
  const Sharding& sharding_;
  const ShardCosts& costs_;
  std::map<std::string, const HaloExchange*> halos_;
  ShardForecast result_;
};

}  // namespace

std::vector<double> product_seconds(const Graph& graph, const ShardingOptions& options) {
  constexpr double kPasses = 3;  // forward, and a gradient of each operand
  std::vector<double> seconds;
  for (const Node& node : graph.nodes) {
    seconds.push_back(kPasses * product_flops(graph, node, options.microbatch) /
                      options.flops_per_second);
  }
  return seconds;
}

ShardForecast forecast(const Graph& graph, const Sharding& sharding, const ShardCosts& costs) {
  if (costs.node_seconds.size() != graph.nodes.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                "a forecast takes a time for each of " + std::to_string(graph.nodes.size()) +
                    " nodes, got " + std::to_string(costs.node_seconds.size()));
  }
  return Forecaster(graph, sharding, costs).run();
}

}  // namespace trireme::sharding
