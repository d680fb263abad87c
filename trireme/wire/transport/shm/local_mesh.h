#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/wire/transport/store.h"

namespace trireme::transport::internal {

struct LocalMeshOptions {
  StoreClient& store;
  int rank = 0;
  int world_size = 1;
  std::string name;            ///< Of the world.
  std::uint64_t world_id = 0;  ///< What the ranks of a world know.
  Deadline deadline;
  bool shares_memory = true;
};

/// Finds the ranks of this host and connects to each of them: a rank to those below it. Every rank
/// of the world calls it. Blocks.
///
///     store:  world/host/0 = <host> <name of an abstract Unix socket>     world/host/1 = ...
///
/// Two ranks are on one host where they say the same host, which holds the boot's id and the
/// network namespace. Whoever connects must be of the same user and know the world's id; others
/// are turned away.
///
/// Errors   kTimeout, naming who is missing; kPeerLost of the store.
std::map<int, Descriptor> connect_local_ranks(const LocalMeshOptions& options);

}  // namespace trireme::transport::internal
