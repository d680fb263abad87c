#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"

namespace trireme::launch {

/// A process that is about to be started.
struct ProcessOptions {
  std::string program;                 ///< A path, or a name that is looked up in PATH.
  std::vector<std::string> words;      ///< The command line; its first word is the program's name.
  std::vector<std::string> variables;  ///< The whole environment: NAME=value.
  bool captures_output = false;        ///< Else both outputs are this process's, and the input.
};

/// A process of ours, at the head of a process group of its own. It is killed when the thread that
/// started it ends.
struct RankProcess {
  int rank = 0;
  pid_t pid = -1;
  Descriptor ended;   ///< Readable once it has ended.
  Descriptor output;  ///< Non-blocking; where its outputs are captured.
  Descriptor errors;
};

/// Errors   kInvalidArgument, naming the program, where it cannot be executed; kResourceExhausted;
///          kIo. Nothing runs then.
RankProcess start_process(int rank, const ProcessOptions& options);

/// Whether a process is stopped, as by SIGSTOP.
bool is_stopped(const RankProcess& process);

/// How a process has ended.
struct ProcessEnd {
  int rank = 0;
  int code = 0;               ///< As a shell has it: 128 + signal.
  std::optional<int> signal;  ///< That ended it.

  /// `its process ended with exit code 3`, `its process was ended by signal 9 (Killed)`.
  std::string text() const;
};

/// Takes the exit status of a process that has ended, and kills what it has left in its group.
///
/// Errors   kIo where the system does not tell it.
ProcessEnd take_end(const RankProcess& process);

/// This process's environment with `own` in place of what has the same names, and without those of
/// `dropped`.
std::vector<std::string> environment_with(const std::vector<std::string>& own,
                                          const std::vector<std::string>& dropped);

}  // namespace trireme::launch
