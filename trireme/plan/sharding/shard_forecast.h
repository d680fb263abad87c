#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/find_sharding.h"

namespace trireme::sharding {

/// What a microbatch is expected to take on a rank that has one of the shards, forward and backward.
struct ShardForecast {
  double whole_seconds = 0;    ///< Of the whole model on one rank.
  double compute_seconds = 0;  ///< Of the shard with most rows, or of any.
  double sum_seconds = 0;
  double halo_seconds = 0;
  int num_sums = 0;
  int num_halos = 0;
  double seconds() const { return compute_seconds + sum_seconds + halo_seconds; }
};

/// What a forecast goes by.
struct ShardCosts {
  std::int64_t microbatch = 1;
  /// By position in the whole graph, forward and backward.
  std::vector<double> node_seconds;
  /// Of a message of so many bytes between two ranks.
  std::function<double(std::int64_t bytes)> message_seconds;
};

/// Times of nodes by their products alone.
std::vector<double> product_seconds(const graph::Graph& graph, const ShardingOptions& options);

/// Split nodes take their part of the time of the whole ones, others all of it; sums go round a ring or by doubling, whichever
/// is quicker, as the graph of a shard has them (sharded_graph.h), and halos to both sides at once. Masks of dropouts are drawn
/// whole. Paddings and slices are not counted, nor what a norm on tiles takes longer than one that is whole.
///
/// Errors   those of `sharded_graph`; kInvalidArgument where there is not a time for each node.
ShardForecast forecast(const graph::Graph& graph, const Sharding& sharding,
                       const ShardCosts& costs);

}  // namespace trireme::sharding
