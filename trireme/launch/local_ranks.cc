#include "trireme/launch/local_ranks.h"

#include "trireme/base/exit_code.h"
#include "trireme/launch/launcher.h"

namespace trireme::launch {

int run_local_ranks(int num_ranks, std::span<const char* const> argv) {
  const LaunchResult result =
      launch({.num_ranks = num_ranks,
              .program = "/proc/self/exe",
              .words = {argv.begin(), argv.end()},
              .prefixes_lines = false,
              .explained_code = kMisuse,
              .grace = std::chrono::seconds(kGraceSeconds),
              .signal_grace = std::chrono::minutes(10)});  // a step and a checkpoint
  const bool is_for_us = result.signal && result.was_passed_on;
  return result.signal && !is_for_us ? 1 : result.exit_code;
}

}  // namespace trireme::launch
