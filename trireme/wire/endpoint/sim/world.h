#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::transport {

namespace internal {
class SimNetwork;
}

struct SimOptions {
  std::uint64_t seed = 0;                  ///< Of the delays and losses.
  std::chrono::microseconds max_delay{0};  ///< Each message takes a random time up to this.
  int drop_percent = 0;  ///< Of messages, each time that they are sent; below 100.
  /// What was dropped is sent again after that long.
  std::chrono::microseconds resend_after{2000};
  bool shares_memory = false;  ///< The ranks, which are of one process.
  int ranks_per_host = 1;      ///< As LocalPeers numbers hosts.
};

/// A world inside one process: the ranks are threads of a test. Messages are copied by a thread of
/// the world's own, after seeded random delays and losses, as a network has them: those of one
/// (sender, receiver, tag) arrive in order, others overtake each other.
///
/// Threads  safe from any thread.
class SimWorld {
 public:
  explicit SimWorld(int num_ranks, SimOptions options = {});

  /// Once per rank; the endpoints keep the world alive.
  std::unique_ptr<Endpoint> make_endpoint(int rank);

  /// The rank dies: every work fails, naming it.
  void kill(int rank);

 private:
  std::shared_ptr<internal::SimNetwork> network_;  // shared with the endpoints
};

/// All endpoints of a SimWorld.
std::vector<std::unique_ptr<Endpoint>> make_sim_world(int num_ranks, SimOptions options = {});

}  // namespace trireme::transport
