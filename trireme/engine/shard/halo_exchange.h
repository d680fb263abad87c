#pragma once

#include <memory>

#include "trireme/engine/shard/shard_functions.h"
#include "trireme/plan/sharding/split.h"
#include "trireme/plan/sharding/tiles.h"

namespace trireme::shard {

/// Which shards a process has, of how many.
struct LocalShards {
  sharding::ShardRange range;
  int num_shards = 1;
};

/// The function of a halo exchange: tiles of the shards here -> the rows that each of them wants; its backward adds gradients of
/// rows to their owners' tiles.
///
/// Gradients are added in the order of shards, so ranks with any number of them have the bits of one process with all.
/// Errors   those of the group. Cost   copies what is taken; of what other ranks have, an all_to_all.
std::shared_ptr<const OpaqueFunction> make_halo_function(const sharding::HaloExchange& halo,
                                                         const LocalShards& local,
                                                         const ShardPeers& peers);

}  // namespace trireme::shard
