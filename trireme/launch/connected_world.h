#pragma once

#include <chrono>

#include "trireme/base/environment.h"
#include "trireme/wire/collectives/world.h"
#include "trireme/wire/endpoint/elastic_world.h"

namespace trireme::launch {

/// This process's place in a world of ranks, connected to all others.
class ConnectedWorld {
 public:
  /// deadline   of the start and of every wait later.
  /// Errors     kTimeout, kPeerLost, kIo of the store and the connections, naming rank and address.
  ConnectedWorld(const RankEnvironment& environment, const Logger& logger,
                 std::chrono::milliseconds deadline);

  collectives::World world() const { return {ranks_.endpoint(), watch_, costs_}; }
  int rank() const { return ranks_.rank(); }

  /// Orderly end, which every rank calls; the second time it does nothing.
  void shutdown();

 private:
  transport::WatchOptions watch_;
  bool has_left_ = false;
  transport::ElasticWorld ranks_;
  collectives::Costs costs_;
};

}  // namespace trireme::launch
