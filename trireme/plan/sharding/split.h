#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::sharding {

/// How a tensor is split over S shards. Dimension `dim` is `blocks` equal blocks, one behind the
/// other; of each block shard s has the s-th of S equal parts:
///
///     1 block, S = 2    0 0 0 1 1 1
///     3 blocks, S = 2   0 1 0 1 0 1      query, key and value in one weight
struct TensorSplit {
  int dim = 0;
  std::int64_t blocks = 1;
  auto operator<=>(const TensorSplit&) const = default;
};

/// Values that are split; all others are whole in every shard.
using Splits = std::map<graph::ValueId, TensorSplit>;

/// The shards 0 .. S - 1 that one process runs: `count` of them from `first` on.
struct ShardRange {
  int first = 0;
  int count = 1;
};

/// Whether a tensor of this shape has `split` for `num_shards`: the dimension exists, does not grow with the batch,
/// and its blocks divide evenly.
bool can_split(const std::vector<graph::Size>& shape, TensorSplit split, int num_shards);

/// Shape and strides of a shard's part, its memory as dense as that of the whole.
void make_local(graph::Value& value, TensorSplit split, int num_shards);

/// How a tensor that is split has the split in another shape of the same elements; nothing where no dimension does.
///
///     [B, 12] of 3 blocks as [B, 3, 4]: dimension 2, one block       [B, 12] of one block as [B, 3, 4]: none for S = 2
std::optional<TensorSplit> reshaped(const std::vector<graph::Size>& from,
                                    const std::vector<graph::Size>& to, TensorSplit split,
                                    int num_shards);

}  // namespace trireme::sharding
