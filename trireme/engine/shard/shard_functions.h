#pragma once

#include <map>
#include <memory>
#include <string>

#include "trireme/model.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::shard {

/// The other ranks that have shards of the same tensors.
struct ShardPeers {
  /// Of all ranks with shards, in their order; null: all shards are here. Outlives whoever sums.
  collectives::Group* group = nullptr;
  transport::WatchOptions watch = {};  ///< How long a sum waits for them.
};

/// The sum over all shards of the partial results here, [..] each of one shape and dtype; in new memory.
///
/// Shards here are combined by THE tree (kernels/reduce), and so are ranks: where each rank has as many shards, a power
/// of two, the bits are those of one process with all of them. f16 and bf16 are rounded after each merge.
/// Errors   those of the group.
/// Cost     reads every partial result once; an all_reduce.
at::Tensor sum_over_shards(const TensorList& partial, const ShardPeers& peers);

/// What the graph of a process with `num_local` shards calls (sharding/sharded_graph.h), by name. Each forward and backward
/// has the other's: a sum hands its gradient to every shard, what is given to shards sums theirs.
///
std::map<std::string, std::shared_ptr<const OpaqueFunction>> make_shard_functions(
    int num_local, const ShardPeers& peers);

}  // namespace trireme::shard
