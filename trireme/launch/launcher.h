#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace trireme::launch {

struct LaunchOptions {
  int num_ranks = 1;
  std::string program;             ///< A path, or a name that is looked up in PATH.
  std::vector<std::string> words;  ///< The command line; its first word is the program's name.
  std::string token_file;          ///< Of the job's token; empty: a random token.

  /// Each line of the ranks' outputs begins with `[rank] `, and they have no input. Else they have
  /// this process's outputs and input.
  bool prefixes_lines = true;

  /// Takes care of all processes that ranks leave behind. Only where this process has no other
  /// children.
  bool adopts_orphans = false;

  /// A rank that fails with it has said why, and nothing is added; 0: none.
  int explained_code = 0;

  std::chrono::milliseconds grace{5'000};          ///< From the first failure to SIGTERM.
  std::chrono::milliseconds kill_after{3'000};     ///< From there to SIGKILL.
  std::chrono::milliseconds signal_grace{30'000};  ///< From a forwarded signal to end to SIGKILL.
};

/// The first failure of a rank; code 0 where there was none.
struct LaunchResult {
  int exit_code = 0;  ///< 128 + signal where one ended it: the one that was passed on, if there is.
  std::optional<int> signal;
  bool was_passed_on = false;  ///< The signal was sent to this process, which sent it to the ranks.
};

/// Starts ranks on this host, serves the store where they meet, and waits for all of them.
///
/// Each rank gets TRIREME_RANK, TRIREME_WORLD_SIZE, TRIREME_STORE_HOST, TRIREME_STORE_PORT,
/// TRIREME_LAUNCHER_PID and the job's token, and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 go to
/// all, but for those that this process ignores. A rank that fails, or ends before its goodbye, is
/// named to the others by the store; the first failure is one line on standard error; those that
/// run on after `grace` are ended, at once where all that are left are stopped. Of several that are found ended at once, one that a signal ended
/// counts as first. Ranks die with the calling thread.
///
/// Returns once somebody has taken the ranks' captured outputs; after a signal to end it waits for
/// no reader that takes nothing.
///
/// Errors   kInvalidArgument where the program cannot be executed or a number is out of range; kIo,
///          also where outputs of ranks that did well could not be passed on; kResourceExhausted. No
///          rank runs then. kTimeout where the system does not end one that
///          was killed.
/// Threads  one call in a process at a time: it takes the process's signals.
LaunchResult launch(const LaunchOptions& options);

}  // namespace trireme::launch
