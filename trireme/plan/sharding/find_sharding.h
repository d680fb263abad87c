#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/sharding/split.h"

namespace trireme::sharding {

/// Part of a model that is split: from products whose weights are split by outputs to one or more whose weights are split by
/// inputs, whose outputs are added up over the shards; or a vocabulary, of which shards have rows of a table and classes of a loss.
struct ShardedPart {
  std::string name;  ///< Of the first node that adds up.
  std::vector<graph::NodeId>
      sums;  ///< Products, lookups and losses that are added up, in node order.
  std::vector<graph::ValueId>
      taken;  ///< Whole values that its shards take and whose gradients are added up, ascending.
  double flops = 0;            ///< Of products in it, of a microbatch, forward and backward.
  std::int64_t sum_bytes = 0;  ///< Of what is added up in both passes.
  std::vector<graph::NodeId> halos =
      {};                       ///< Of tiles: nodes that take rows of other shards, in node order.
  std::int64_t halo_bytes = 0;  ///< That a shard takes of others in both passes.
  double seconds_saved = 0;     ///< What that is expected to be worth.
  bool operator==(const ShardedPart&) const = default;
};

/// What is split.
enum class SplitKind : std::uint8_t {
  kTensors,  ///< Weights, heads, channels, vocabularies: find_sharding.
  kTiles,  ///< Rows of images and slices of volumes, unevenly where they do not divide: find_tiles.
};

/// Which tensors of a model are split over how many shards.
struct Sharding {
  SplitKind kind = SplitKind::kTensors;
  std::string graph_sha256;  ///< Of the graph whose values it counts.
  int num_shards = 1;
  Splits splits;
  std::vector<ShardedPart> parts;  ///< What was split first stands first.
  bool operator==(const Sharding&) const = default;
};

/// What decides whether a part is worth its sums. Changes results, as it changes what is split.
struct ShardingOptions {
  int num_shards = 2;
  std::int64_t microbatch = 1;         ///< Samples.
  double flops_per_second = 5e10;      ///< Of a rank, in matrix products.
  double link_bytes_per_second = 5e9;  ///< Of a rank, between shards.
  double link_seconds = 2e-5;          ///< Of a sum over the shards, however small.
};

/// kInvalidArgument where there is not at least one shard, or a rate is not positive.
void check(const ShardingOptions& options);

/// Finds what to split, by what it saves and costs alone; names do not enter.
///
/// Every product with a weight is tried as the end of a part: its weight is split by inputs; and every lookup, its table by
/// rows, and every cross entropy, its logits by classes. From there splits spread, backward
/// and forward, by the rules of the operators (node_splits.h), until every value that is split is made and taken by nodes
/// that can do with it, weights split with them:
///
///     w1 by outputs -> relu -> w2 by inputs, sum              a feed-forward layer
///     query, key, value by heads -> softmax -> by heads -> output by inputs, sum    attention
///     table by rows -> lookup, sum; head by outputs -> logits by classes -> loss, sums    a vocabulary, tied or not
///
/// A part in which that comes to no end (a norm over what is split) is left whole. The others are taken from the one that saves
/// most on, where they fit what is taken and save anything: (1 - 1/S) of the time of their products, less a ring's time for
/// the sums of both passes.
///
/// graph    in train mode, one that passes `check`.
/// Errors   those of `check`.
/// Cost     products with weights times nodes and arguments.
Sharding find_sharding(const graph::Graph& graph, const ShardingOptions& options);

}  // namespace trireme::sharding
