#pragma once

#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/held_messages.h"
#include "trireme/plan/simulate/prices.h"
#include "trireme/plan/simulate/simulate.h"

namespace trireme::simulate {

/// Bytes of messages that ranks hold at their actions in a step that was played: a sender until the receiver takes one
/// in, which is when it has come and the receiver has room (schedule::kReceivedAhead), a receiver from then on until the
/// action that asked for it. Unlike `held_messages` this is no bound: ranks that are late hold more.
///
/// simulation   of `program`.
/// inputs       that it was priced by.
/// Returns      by world rank, by action in the order of its program.
/// Cost         operations, and messages of a rank x their logarithm.
std::vector<std::vector<HeldMessages>> expected_messages(const schedule::StepProgram& program,
                                                         const Simulation& simulation,
                                                         const PriceInputs& inputs);

}  // namespace trireme::simulate
