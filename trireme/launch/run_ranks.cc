#include "trireme/launch/run_ranks.h"

#include <exception>
#include <string>

#include "trireme/base/exit_code.h"
#include "trireme/error.h"
#include "trireme/launch/local_ranks.h"

namespace trireme::launch {
namespace {

/// What a command line that was given once is to blame for: all ranks learn it.
bool is_misuse(const Error& error) {
  return error.kind() == ErrorKind::kInvalidArgument && !error.context().step;
}

/// Rank 0 says it for all, without what the ranks were doing when they learnt it.
int misuse_of_ranks(const Error& error, int rank) {
  if (rank != 0) return kMisuse;
  Error plain(error.kind(), error.message());
  if (error.context().rank != 0) plain.add({.rank = error.context().rank});
  throw plain;
}

/// Tells the others. Returns the exit code, or throws what this rank is to say.
int fail(Error error, const RankEnvironment& environment, const ConnectedWorld& world) {
  world.world().endpoint.poison(error.add({.rank = world.rank()}));
  if (environment.launcher == Launcher::kTrireme && is_misuse(error)) {
    return misuse_of_ranks(error, world.rank());
  }
  throw error;
}

}  // namespace

int run_ranks(const RankProgram& program, int num_ranks,
              const std::function<int(ConnectedWorld*)>& body) {
  const auto& environment = program.environment.ranks;
  if (!environment) {
    return num_ranks == 1 ? body(nullptr) : run_local_ranks(num_ranks, program.argv);
  }
  const Logger logger(program.environment.log_level, "rank " + std::to_string(environment->rank));
  ConnectedWorld world(*environment, logger, program.deadline);
  try {
    const int code = body(&world);
    world.shutdown();
    return code;
  } catch (const Error& error) {
    return fail(error, *environment, world);
  } catch (const std::exception& failure) {
    return fail(Error(ErrorKind::kModelFailure, failure.what()), *environment, world);
  }
}

}  // namespace trireme::launch
