#pragma once

#include <optional>
#include <string>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/execution.h"

namespace trireme::schedule {

/// What is wrong with a schedule.
struct Flaw {
  std::optional<Cell> cell;  ///< Nothing where it is the schedule's size.
  std::string problem;
};

/// The first place at which `schedule` breaks an invariant of action.h:
///
///  * each action is of a stage of its rank and of one of the microbatches;
///  * in each stage the forwards come in microbatch order, none missing or repeated, and so do B or
///    I, and B or W; B and I after their F, W after its I;
///  * run in this order no rank waits for ever; else the flaw names who waits for what.
///
/// Nothing where it breaks none. Any schedule is safe to pass in. Cost as `execute`.
std::optional<Flaw> find_flaw(const Schedule& schedule);

/// Throws kInvalidArgument where there is a flaw: the problem, and a grid with the cell marked.
void check(const Schedule& schedule);

}  // namespace trireme::schedule
