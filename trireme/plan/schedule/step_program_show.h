#pragma once

#include <string>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// The step program for people: channels with how many messages each carries in a step, groups, and
/// each rank's operations, one a line. For a schedule there is `grid` (execution.h).
///
/// program   one that `step_program_from_json` accepts.
std::string show(const StepProgram& program);

}  // namespace trireme::schedule
