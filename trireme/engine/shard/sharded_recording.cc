#include "trireme/engine/shard/sharded_recording.h"

#include <ATen/core/grad_mode.h>

#include <bit>
#include <string>

#include "trireme/engine/shard/halo_exchange.h"
#include "trireme/error.h"

namespace trireme::shard {
namespace {

using sharding::TensorSplit;

/// [.., blocks, elements of a block in the shard, ..], a view.
at::Tensor blocks_of(const at::Tensor& whole, TensorSplit split, int num_shards, int shard) {
  const bool has_dim = split.dim >= 0 && split.dim < whole.dim();
  if (!has_dim || whole.size(split.dim) % (split.blocks * num_shards) != 0 || shard < 0 ||
      shard >= num_shards) {
    throw Error(ErrorKind::kInvalidArgument,
                "a tensor of " + std::to_string(whole.dim()) + " dimensions has no part of shard " +
                    std::to_string(shard) + " of " + std::to_string(num_shards) +
                    " along dimension " + std::to_string(split.dim) + " in " +
                    std::to_string(split.blocks) + " blocks");
  }
  return whole.detach()
      .unflatten(split.dim, {split.blocks, num_shards, -1})
      .select(split.dim + 1, shard);
}

void check_range(const sharding::Sharding& sharding, sharding::ShardRange range,
                 const ShardPeers& peers) {
  if (peers.group == nullptr && range.count == sharding.num_shards) return;
  const int size = peers.group == nullptr ? 1 : peers.group->size();
  const bool is_power = std::has_single_bit(static_cast<unsigned>(range.count));
  if (size * range.count == sharding.num_shards && is_power) return;
  throw Error(ErrorKind::kInvalidArgument,
              "ranks have " + std::to_string(range.count) + " of " +
                  std::to_string(sharding.num_shards) + " shards each, and there are " +
                  std::to_string(size) +
                  " of them; each needs as many, a power of two, so that sums have the same bits");
}

}  // namespace

at::Tensor part_of(const at::Tensor& whole, TensorSplit split, int num_shards, int shard) {
  const at::NoGradGuard no_grad;
  return blocks_of(whole, split, num_shards, shard)
      .clone(at::MemoryFormat::Contiguous)
      .flatten(split.dim, split.dim + 1);
}

void put_part(const at::Tensor& part, const at::Tensor& whole, TensorSplit split, int num_shards,
              int shard) {
  const at::NoGradGuard no_grad;
  at::Tensor place = blocks_of(whole, split, num_shards, shard);
  place.copy_(part.detach().unflatten(split.dim, {split.blocks, -1}));
}

ShardedRecording make_sharded_recording(const record::Recording& whole,
                                        const sharding::Sharding& sharding,
                                        sharding::ShardRange range, const ShardPeers& peers) {
  check_range(sharding, range, peers);
  sharding::ShardedGraph sharded = sharding::sharded_graph(whole.graph, sharding, range);
  ShardedRecording result{.recording = whole, .parts = std::move(sharded.parts)};
  result.recording.graph = std::move(sharded.graph);
  result.recording.tensors.resize(result.recording.graph.values.size());
  result.recording.opaques.merge(make_shard_functions(range.count, peers));
  for (const sharding::HaloExchange& halo : sharded.halos) {
    result.recording.opaques[halo.name] =
        make_halo_function(halo, {range, sharding.num_shards}, peers);
  }
  for (const sharding::ParameterPart& part : result.parts) {
    const graph::ValueId from = whole.graph.parameters[part.parameter].value;
    at::Tensor tensor =
        part_of(whole.tensors[from], sharding.splits.at(from), sharding.num_shards, part.shard);
    tensor.requires_grad_(whole.tensors[from].requires_grad());
    result.recording.tensors[part.value] = std::move(tensor);
  }
  return result;
}

void put_parts(const ShardedRecording& sharded, const record::Recording& whole,
               const sharding::Sharding& sharding) {
  for (const sharding::ParameterPart& part : sharded.parts) {
    const graph::ValueId to = whole.graph.parameters[part.parameter].value;
    put_part(sharded.recording.tensors[part.value], whole.tensors[to], sharding.splits.at(to),
             sharding.num_shards, part.shard);
  }
}

}  // namespace trireme::shard
