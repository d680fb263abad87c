#pragma once

#include <vector>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Runs all ranks of a step with nothing but order: a send is posted, where its channel has a limit
/// once there is room, and holds its buffer until it is received; a recv waits for the next message
/// of its channel, which must be the one it names; a
/// collective waits for all ranks of its group, whose collectives must be the same in the same
/// order; a reduction runs beside what follows, and its join waits for all ranks to have started it; so do the gather of values
/// and its await.
///
/// program   any.
/// Errors    kInvalidArgument where a channel or group is not one of the rank's; messages or
///           collectives do not match; a bucket is joined that was not reduced; a message is never
///           received; ranks wait for ever: then it names who waits at what for whom.
/// Cost      linear in operations.
void run_rendezvous(const StepProgram& program);

/// Per channel, the most messages that can be posted and not yet received, however fast the ranks.
///
/// program   one that passes `run_rendezvous`.
/// Cost      operations x ranks that receive.
std::vector<int> most_held(const StepProgram& program);

}  // namespace trireme::schedule
