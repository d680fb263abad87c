#pragma once

#include <signal.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// What is asked of a training while it runs.
struct TrainingRequest {
  int stop_signal = 0;    ///< End after this step, with what was learnt kept; 0: none has come.
  bool stops = false;     ///< The same, asked for by a call or a signal.
  bool saves = false;     ///< Write a checkpoint now.
  bool has_news = false;  ///< Evaluations have come from elsewhere.
};

/// Signals as requests, while one of these lives: SIGINT and SIGTERM ask to stop, SIGUSR1 for a
/// checkpoint. Those that were ignored before, as nohup has it, stay ignored.
///
/// A further signal to stop, more than 2 s after the first, ends the process at once. Sooner it is
/// the same request: a terminal and a launcher may both pass it on.
///
/// Threads  one in a process at a time.
class SignalRequests {
 public:
  SignalRequests();
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  /// What has come: a stop stays, a wish for a checkpoint is told once.
  TrainingRequest take();

 private:
  std::array<struct sigaction, 3> before_;
};

/// What any rank was asked, on all ranks.
class RankRequests {
 public:
  /// Every rank makes one, and calls the rest. handles_signals: those of SignalRequests.
  RankRequests(const collectives::World& world, bool handles_signals);

  /// asked   of this rank, beside signals. Blocks until all ranks are here, which is some
  ///         microseconds where they share memory.
  TrainingRequest agree(TrainingRequest asked);

  /// From here on a signal does what it did before.
  void ignore_signals() { signals_.reset(); }

 private:
  collectives::World world_;
  std::optional<SignalRequests> signals_;
  std::unique_ptr<collectives::Group> group_;  ///< Null where there is one rank.
};

/// `signal 15 (Terminated)`.
std::string signal_text(int signal);

}  // namespace trireme::session
