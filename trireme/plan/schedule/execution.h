#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// How long actions take, in whole units; at least 1 each.
struct UnitTimes {
  int forward = 1;
  int backward = 2;
  int backward_input = 1;
  int backward_weight = 1;

  int of(ActionKind kind) const;
};

struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Span&) const = default;
};

/// When the actions of each rank run. A rank with fewer spans than actions waits for ever at the
/// first one without.
struct Execution {
  std::vector<std::vector<Span>> ranks;

  /// End of the last action.
  std::int64_t end() const;
};

/// Actions whose outputs `action` needs: the forward of the stage before, the backward of the stage
/// after, and what its own stage did before. A backward stands for an input part too, as kind I.
std::vector<Action> needs(const Action& action, int num_stages);

/// Runs a schedule in unit times: a rank starts its next action once it is free and what the action
/// needs is done; messages take no time.
///
/// schedule   any; num_stages and ranks need not fit its actions.
/// Cost       linear in actions x logarithm, times the waits between ranks.
Execution execute(const Schedule& schedule, const UnitTimes& times = {});

}  // namespace trireme::schedule
