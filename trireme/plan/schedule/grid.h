#pragma once

#include <optional>
#include <string>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/execution.h"

namespace trireme::schedule {

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
