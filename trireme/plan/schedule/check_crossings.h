#pragma once

#include <optional>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Proves, from the graph alone, that every stage gets what its nodes take: for each microbatch that
/// it takes forward the values that other stages make, and for each that it takes back, along their
/// consumers, the gradients of those that require one; nothing else, and nothing twice.
///
/// Derived node by node and not from the StepFacts that the program was written from, so that what
/// these lack is missed here. `check` (check_program.h) proves the order.
/// planned        the graph that the plan's stages count in.
/// num_evaluated  microbatches of an evaluation (make_evaluation_program); nothing of a training.
/// Errors    kInvalidArgument naming value, stages, replica and microbatch.
/// Cost      linear in nodes and operations, and in stages x crossing values x microbatches.
void check_crossings(const StepProgram& program, const graph::Graph& planned,
                     const layout::Plan& plan, std::optional<int> num_evaluated = std::nullopt);

}  // namespace trireme::schedule
