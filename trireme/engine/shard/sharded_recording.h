#pragma once

#include <vector>

#include "trireme/engine/record/recording.h"
#include "trireme/engine/shard/shard_functions.h"
#include "trireme/plan/sharding/find_sharding.h"
#include "trireme/plan/sharding/sharded_graph.h"

namespace trireme::shard {

/// A shard's part of a tensor, in new memory.
///
/// Errors   kInvalidArgument where the dimension is not there or does not divide.
at::Tensor part_of(const at::Tensor& whole, sharding::TensorSplit split, int num_shards, int shard);

/// Writes the part into the whole: what `part_of` has taken.
void put_part(const at::Tensor& part, const at::Tensor& whole, sharding::TensorSplit split,
              int num_shards, int shard);

/// A model as a process with some of the shards runs it: an ordinary recording, which stage programs, executors and
/// captures run as any other.
struct ShardedRecording {
  record::Recording recording;
  std::vector<sharding::ParameterPart> parts;
};

/// Copies the parts of split parameters that are here; others, and buffers, are the model's own.
///
/// Errors   those of sharding::sharded_graph; kInvalidArgument where the ranks of the group do not have `range.count`
///          shards each, a power of two.
ShardedRecording make_sharded_recording(const record::Recording& whole,
                                        const sharding::Sharding& sharding,
                                        sharding::ShardRange range, const ShardPeers& peers);

/// Writes the parts that are here into the model's own tensors.
void put_parts(const ShardedRecording& sharded, const record::Recording& whole,
               const sharding::Sharding& sharding);

}  // namespace trireme::shard
