#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::sharding {

/// Rows [begin, end) of a dimension.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  auto operator<=>(const RowRange&) const = default;
};

/// What two ranges have in common; empty where they have nothing.
RowRange overlap(RowRange a, RowRange b);

/// Rows of a shard's tile: of `extent` rows shard s has [extent * s / S, extent * (s + 1) / S). Tiles of dimensions that are as
/// long so begin and end alike, whoever made them.
RowRange tile_rows(std::int64_t extent, int num_shards, int shard);

/// By shard.
std::vector<RowRange> all_tiles(std::int64_t extent, int num_shards);

/// Whether every shard has at least one row of the dimension, which does not grow with the batch.
bool can_tile(const std::vector<graph::Size>& shape, int dim, int num_shards);

/// The most rows that a shard takes of others.
///
/// wanted   by shard, within the extent.
std::int64_t most_rows_of_others(const std::vector<RowRange>& wanted, std::int64_t extent);

/// The value with another number of rows, dense, its dimensions in the order in which they lay in memory.
void set_rows(graph::Value& value, int dim, std::int64_t num_rows);

/// Rows of other shards that shards take beside their own tile, by an opaque function of the graph of a process: tiles of the shards
/// here -> their wanted rows. Backward, gradients of what was taken are added to those of their owners.
struct HaloExchange {
  std::string name;  ///< Of the function.
  int dim = 0;
  std::int64_t extent = 0;
  std::vector<RowRange> wanted;  ///< By shard, within the extent.
  bool operator==(const HaloExchange&) const = default;
};

}  // namespace trireme::sharding
