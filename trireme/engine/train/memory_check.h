#pragma once

#include "trireme/plan/layout/plan.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// Throws where the ranks of a machine are predicted to need more memory than it has left: before
/// the first step and not, killed by the system, in its middle. A plan without a prediction passes.
///
/// Errors   kResourceExhausted on every rank: which machine, how many bytes too many, what helps.
///          Every rank calls it, before it has memory of its own.
void check_memory(const collectives::World& world, const layout::Plan& plan);

}  // namespace trireme::train
