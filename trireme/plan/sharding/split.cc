#include "trireme/plan/sharding/split.h"

#include <array>
#include <cstddef>

namespace trireme::sharding {
namespace {

using graph::Size;
using Extents = std::vector<std::int64_t>;

Extents at_batch(const std::vector<Size>& shape, std::int64_t batch) {
  Extents extents;
  for (const Size& size : shape) extents.push_back(size.at(batch));
  return extents;
}

/// Dimensions [begin, end) of each shape that hold the same elements.
struct Group {
  std::size_t from_begin = 0, from_end = 0;
  std::size_t to_begin = 0, to_end = 0;
};

/// The smallest group with dimension `dim` of `from`; nothing where the shapes have different numbers of elements.
std::optional<Group> group_of(const Extents& from, const Extents& to, std::size_t dim) {
  Group group;
  while (group.from_end <= dim) {
    group.from_begin = group.from_end;
    group.to_begin = group.to_end;
    if (group.from_end == from.size() || group.to_end == to.size()) return std::nullopt;
    std::int64_t left = from[group.from_end++], right = to[group.to_end++];
    while (left != right) {
      if (left < right) {
        if (group.from_end == from.size()) return std::nullopt;
        left *= from[group.from_end++];
      } else {
        if (group.to_end == to.size()) return std::nullopt;
        right *= to[group.to_end++];
      }
    }
  }
  return group;
}

std::int64_t product(const Extents& extents, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t i = begin; i < end; ++i) result *= extents[i];
  return result;
}

/// Of a group's elements, in order, shard s has the s-th of S parts of each `period`. A dimension splits them so where
/// a part is whole rows of it and the period a whole number of blocks.
std::optional<TensorSplit> reshaped(const Extents& from, const Extents& to, TensorSplit split,
                                    int num_shards) {
  const auto dim = static_cast<std::size_t>(split.dim);
  const auto group = group_of(from, to, dim);
  if (!group) return std::nullopt;
  const std::int64_t period = from[dim] / split.blocks * product(from, dim + 1, group->from_end);
  for (std::size_t e = group->to_begin; e < group->to_end; ++e) {
    const std::int64_t row = product(to, e + 1, group->to_end);
    const std::int64_t all = to[e] * row;
    if (period % (row * num_shards) != 0 || all % period != 0) continue;
    return TensorSplit{static_cast<int>(e), all / period};
  }
  return std::nullopt;
}

}  // namespace

bool can_split(const std::vector<Size>& shape, TensorSplit split, int num_shards) {
  if (split.dim < 0 || static_cast<std::size_t>(split.dim) >= shape.size()) return false;
  const Size& size = shape[split.dim];
  if (!size.is_fixed() || size.fixed <= 0 || split.blocks <= 0 || num_shards <= 0) return false;
  return size.fixed % split.blocks == 0 && size.fixed / split.blocks % num_shards == 0;
}

void make_local(graph::Value& value, TensorSplit split, int num_shards) {
  const Size stride = value.strides[split.dim];
  const Size span{stride.per_sample * value.shape[split.dim].fixed,
                  stride.fixed * value.shape[split.dim].fixed};
  value.shape[split.dim].fixed /= num_shards;
  if (span == Size{}) return;  // repeated in memory
  // Steps over the whole dimension become steps over a shard's part of it.
  for (Size& other : value.strides) {
    const bool is_over = other.per_sample >= span.per_sample && other.fixed >= span.fixed;
    if (!is_over || other.per_sample % num_shards != 0 || other.fixed % num_shards != 0) continue;
    other.per_sample /= num_shards;
    other.fixed /= num_shards;
  }
}

std::optional<TensorSplit> reshaped(const std::vector<Size>& from, const std::vector<Size>& to,
                                    TensorSplit split, int num_shards) {
  std::optional<TensorSplit> result;
  // Two batch sizes tell what holds for all from what holds by chance.
  for (const std::int64_t batch : std::array{7, 11}) {
    const auto found = reshaped(at_batch(from, batch), at_batch(to, batch), split, num_shards);
    if (!found || (result && *result != *found)) return std::nullopt;
    result = found;
  }
  return can_split(to, *result, num_shards) ? result : std::nullopt;
}

}  // namespace trireme::sharding
