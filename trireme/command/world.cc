#include "trireme/command/world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "trireme/base/error.h"
#include "trireme/command/torchrun_store.h"
#include "trireme/wire/transport/tcp/world.h"

namespace trireme::command {
namespace {

/// Address by which this process would reach `peer`: one at which others can reach this one.
std::string host_towards(const transport::Address& peer, std::chrono::milliseconds deadline) {
  return transport::local_address(transport::connect_to(peer, {.deadline = deadline})).host;
}

/// Where the store is; rank 0 serves it, unless the launcher does.
transport::Address meet(const RankEnvironment& environment, std::chrono::milliseconds deadline,
                        std::unique_ptr<transport::StoreServer>& server) {
  const transport::Address given{environment.store_host, environment.store_port};
  const bool serves = environment.rank == 0 && environment.launcher != Launcher::kTrireme;
  if (environment.launcher == Launcher::kTorchrun) {
    if (!serves) return find_store(given, environment.generation, deadline);
    server = std::make_unique<transport::StoreServer>(
        transport::Address{host_towards(given, deadline), 0});
    publish_store(given, environment.generation, server->address());
    return server->address();
  }
  if (serves) server = std::make_unique<transport::StoreServer>(given);
  return given;
}

/// This process is stuck in an operator while the world has failed: says why and ends.
void abandon(int rank, const Error& error) {
  std::fprintf(stderr, "trireme: rank %d: %s\n", rank, error.what());
  std::fflush(stderr);
  _exit(1);
}

}  // namespace

ConnectedWorld::ConnectedWorld(const RankEnvironment& environment, const Logger& logger,
                               std::chrono::milliseconds deadline)
    : watch_{.deadline = deadline, .logger = logger} {
  if (environment.launcher == Launcher::kTrireme) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const transport::Address address = meet(environment, deadline, server_);
  const int rank = environment.rank;
  store_ = std::make_unique<transport::StoreClient>(address, rank,
                                                    transport::ConnectPolicy{.deadline = deadline});
  endpoint_ = transport::connect_tcp_world(
      {.store = *store_,
       .rank = rank,
       .world_size = environment.world_size,
       .deadline = deadline,
       .on_abandon = [rank](const Error& error) { abandon(rank, error); }});
}

ConnectedWorld::~ConnectedWorld() = default;

void ConnectedWorld::shutdown() {
  endpoint_->shutdown(watch_.deadline);
  store_->shutdown();
}

}  // namespace trireme::command
