#include "trireme/plan/sharding/tiles.h"

#include <algorithm>
#include <numeric>

#include "trireme/plan/sharding/sizes.h"

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

std::int64_t most_rows_of_others(const std::vector<RowRange>& wanted, std::int64_t extent) {
  const int num_shards = static_cast<int>(wanted.size());
  std::int64_t most = 0;
  for (int shard = 0; shard < num_shards; ++shard) {
    const RowRange own = tile_rows(extent, num_shards, shard);
    most = std::max(most, wanted[shard].size() - overlap(wanted[shard], own).size());
  }
  return most;
}

void set_rows(graph::Value& value, int dim, std::int64_t num_rows) {
  value.shape[dim].fixed = num_rows;
  std::vector<int> inner_first(value.shape.size());
  std::iota(inner_first.begin(), inner_first.end(), 0);
  std::ranges::reverse(inner_first);  // of equal strides the last dimension
  std::ranges::stable_sort(inner_first, {}, [&](int d) { return value.strides[d]; });
  Size stride{0, 1};
  for (const int d : inner_first) {
    if (value.strides[d] == Size{}) continue;  // repeated in memory
    value.strides[d] = stride;
    stride = times(stride, value.shape[d]);
  }
}

}  // namespace trireme::sharding
