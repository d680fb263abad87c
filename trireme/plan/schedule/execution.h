#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Most microbatches whose activations each stage holds at once: from F until B or W.
///
/// schedule   one that passes `check`.
std::vector<int> most_in_flight(const Schedule& schedule);

/// Place of an action in a schedule; `index` may be one past a rank's last.
struct Cell {
  int rank = 0;
  int index = 0;
  bool operator==(const Cell&) const = default;
};

struct GridOptions {
  UnitTimes times;
  std::optional<Cell> mark;  ///< A cell to underline.
  int max_columns = 0;       ///< Longer rows are cut to this, around the mark; 0: never.
};

/// The schedule for a terminal, one row per rank, over the unit times given. Where each rank has
/// one stage, the stage is left out. With a mark at rank 1, index 2:
///
///     rank 0 | F0 F1 .. .. B0--- .. B1---
///     rank 1 | .. F0 B0--- F1 B1--- .. ..
///            |             ^^
///
/// Actions that wait for ever stand one after another, as if they did not.
std::string grid(const Schedule& schedule, const GridOptions& options = {});

}  // namespace trireme::schedule
