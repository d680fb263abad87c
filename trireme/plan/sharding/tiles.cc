#include "trireme/plan/sharding/tiles.h"

#include <algorithm>

namespace trireme::sharding {

using graph::Size;

RowRange overlap(RowRange a, RowRange b) {
  const RowRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.size() > 0 ? both : RowRange{both.begin, both.begin};
}

RowRange tile_rows(std::int64_t extent, int num_shards, int shard) {
  return {extent * shard / num_shards, extent * (shard + 1) / num_shards};
}

std::vector<RowRange> all_tiles(std::int64_t extent, int num_shards) {
  std::vector<RowRange> tiles;
  for (int shard = 0; shard < num_shards; ++shard) {
    tiles.push_back(tile_rows(extent, num_shards, shard));
  }
  return tiles;
}

bool can_tile(const std::vector<Size>& shape, int dim, int num_shards) {
  if (dim < 0 || static_cast<std::size_t>(dim) >= shape.size() || num_shards <= 0) return false;
  return shape[dim].is_fixed() && shape[dim].fixed >= num_shards;
}

void set_rows(graph::Value& value, int dim, std::int64_t num_rows) {
  const std::int64_t before = value.shape[dim].fixed;
  const Size stride = value.strides[dim];
  const Size span{stride.per_sample * before, stride.fixed * before};
  value.shape[dim].fixed = num_rows;
  if (span == Size{}) return;  // repeated in memory
  for (Size& other : value.strides) {
    const bool is_over = other.per_sample >= span.per_sample && other.fixed >= span.fixed;
    if (!is_over || other.per_sample % before != 0 || other.fixed % before != 0) continue;
    other.per_sample = other.per_sample / before * num_rows;
    other.fixed = other.fixed / before * num_rows;
  }
}

}  // namespace trireme::sharding
