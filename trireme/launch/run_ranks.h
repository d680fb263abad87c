#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "trireme/base/environment.h"
#include "trireme/launch/connected_world.h"

namespace trireme::launch {

/// A program that is to run as several ranks.
struct RankProgram {
  std::span<const char* const> argv;  ///< The whole command line, with which ranks are started.
  const Environment& environment;
  std::chrono::milliseconds deadline;  ///< Of every wait for another rank.
};

/// Runs `body` as one rank of a world: with null where there is only this process; with this rank's
/// world where the environment says that this is one of several. Else starts `num_ranks` processes
/// of this command line, for each of which the latter holds.
///
/// A rank that throws takes the others with it: they end with the same error.
int run_ranks(const RankProgram& program, int num_ranks,
              const std::function<int(ConnectedWorld*)>& body);

}  // namespace trireme::launch
