#include "trireme/launch/connected_world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "trireme/error.h"
#include "trireme/launch/torchrun_store.h"
#include "trireme/wire/collectives/measure.h"
#include "trireme/wire/system/thread.h"

namespace trireme::launch {
namespace {

/// Address by which this process would reach `peer`: one at which others can reach this one.
std::string host_towards(const transport::Address& peer, std::chrono::milliseconds deadline) {
  return transport::local_address(transport::connect_to(peer, {.deadline = deadline})).host;
}

/// From here on this process is killed when its launcher ends; at once where that has ended
/// already.
void end_with(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) {
    throw Error(ErrorKind::kPeerLost, "the process " + std::to_string(launcher) +
                                          " that started this one as a rank has ended");
  }
}

/// Where the store is; rank 0 serves it, unless the launcher does. Does not outlive our launcher.
transport::Meeting meet(const RankEnvironment& environment, std::chrono::milliseconds deadline,
                        const Logger& logger) {
  if (environment.launcher == Launcher::kTrireme) end_with(environment.launcher_pid);
  if (environment.launcher != Launcher::kTorchrun) {
    return transport::meet(environment, std::chrono::steady_clock::now() + deadline, logger);
  }
  const transport::Address agent{environment.store_host, environment.store_port};
  transport::Meeting meeting{.store = {},
                             .token = transport::token_of_job(environment, logger),
                             .server = nullptr,
                             .announcement = nullptr};
  if (environment.rank != 0) {
    meeting.store = find_store(agent, environment.generation, deadline);
    return meeting;
  }
  meeting.server = std::make_unique<transport::StoreServer>(
      transport::Address{host_towards(agent, deadline), 0}, meeting.token, logger);
  meeting.store = meeting.server->address();
  publish_store(agent, environment.generation, meeting.store);
  return meeting;
}

/// This process is stuck in an operator while the world has failed: says why and ends.
void abandon(int rank, const Error& error) {
  std::fprintf(stderr, "trireme: rank %d: %s\n", rank, error.what());
  std::fflush(stderr);
  _exit(1);
}

transport::ElasticWorldOptions options_of(const RankEnvironment& environment, const Logger& logger,
                                          std::chrono::milliseconds deadline) {
  const int rank = environment.rank;
  return {.rank = rank,
          .world_size = environment.world_size,
          .deadline = deadline,
          .host = transport::host_of(environment),
          .on_abandon = [rank](const Error& error) { abandon(rank, error); },
          .logger = logger,
          .shares_memory = environment.shares_memory,
          .ofi_provider = environment.ofi_provider};
}

/// The environment. Takes a core before the world has threads, which then keep off other ranks'.
const RankEnvironment& on_own_core(const RankEnvironment& environment) {
  if (environment.launcher == Launcher::kTrireme) {
    transport::take_cores(environment.rank, environment.world_size);
  }
  return environment;
}

}  // namespace

ConnectedWorld::ConnectedWorld(const RankEnvironment& environment, const Logger& logger,
                               std::chrono::milliseconds deadline)
    : watch_{.deadline = deadline, .warn_after = std::chrono::seconds(3), .logger = logger},
      ranks_(meet(on_own_core(environment), deadline, logger),
             options_of(environment, logger, deadline)) {
  costs_ = collectives::measure_world_costs(ranks_.endpoint(), deadline);
}

void ConnectedWorld::shutdown() {
  if (!std::exchange(has_left_, true)) ranks_.shutdown();
}

}  // namespace trireme::launch
