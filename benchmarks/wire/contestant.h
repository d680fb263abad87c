#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/wire/mailbox.h"
#include "benchmarks/wire/orders.h"
#include "trireme/base/descriptor.h"

namespace trireme::bench {

/// A process to start.
struct Command {
  std::vector<std::string> words;      ///< The program, by path or by PATH, and its arguments.
  std::vector<std::string> variables;  ///< `NAME=value`, beside those of this process.
};

/// The rank processes of one library, as seen by who orders. They live from construction to `stop`
/// and sleep between orders.
///
/// Caller-synchronised.
class Contestant {
 public:
  /// Makes the pipes of `num_ranks` ranks in `folder` and starts processes that, together, run
  /// `take_orders` on each of these ranks. Their output goes to standard error. They get SIGTERM
  /// where the calling thread ends before.
  ///
  /// folder   made here; stays until the end.
  /// Errors   kIo.
  Contestant(std::string name, std::filesystem::path folder, int num_ranks,
             std::span<const Command> commands);
  ~Contestant();
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  const std::string& name() const { return name_; }

  /// Has all ranks run it; their answers by rank. Blocks.
  ///
  /// Errors   kPeerLost where a process has ended; kTimeout, naming the ranks that have not
  ///          answered; kCorruptData.
  std::vector<Answer> run(const Order& order, std::chrono::milliseconds deadline);

  /// Waits until all processes have ended: kPeerLost where one did not end well, kTimeout where one
  /// did not end within 20 s, and then is killed.
  void stop();

 private:
  struct Process {
    int pid = -1;
    Descriptor ended;  ///< Readable when it has.
  };

  void start(const Command& command);
  void wait_readable(const std::vector<bool>& has_answered,
                     std::chrono::steady_clock::time_point until);
  /// Takes its exit status: how it ended in words, empty where well.
  static std::string take_end(Process& process);

  std::string name_;
  std::vector<Descriptor> orders_;
  std::vector<LineReader> answers_;
  std::vector<Process> processes_;
};

}  // namespace trireme::bench
