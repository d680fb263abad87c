#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "trireme/wire/collectives/wait_notes.h"

namespace trireme::collectives {

/// Whether the ranks that wait for each other's GPUs wait in the same operation, found without any
/// message as long as nobody waits for long: then each tells what it is in, by notes.
///
/// Threads  caller-synchronised.
class Agreement {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Agreement(const Members& members) : members_(members), notes_(members) {}

  /// The operation under way has waited for long: tells the others, hears what they are in.
  ///
  /// Errors   kInvalidArgument, as check_same says, for ranks that do something else.
  void look(const Description& description, double scale, Time now);

  /// It has ended: those who were told hear it.
  void retract();

  /// World ranks that have not told that they are in it, in order; all others where all have.
  std::vector<int> missing(const Description& description) const;

 private:
  const Members& members_;
  WaitNotes notes_;
  std::optional<Time> differs_since_;
};

}  // namespace trireme::collectives
