#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Proves, from graph and plan alone, that every gradient of a parameter comes to where the parameter is updated, and every
/// new value to where it is used:
///
///  * where there are replicas, the gradient of each use is summed over all of them, once, by a bucket of the map that
///    has it, which starts with the last backward of the use's stage and is joined after it;
///  * a use on another rank than the parameter's owner sends its gradient there, after that sum and before the owner adds
///    up; each such rank gets the new value once, after the update, and after it is gathered where the state is in shards;
///  * where replicas have values in shards, a stage's are whole in each of its actions, and in shards at the end.
///
/// Derived use by use and not from the StepFacts that the program was written from, so that what these lack is missed
/// here. `check` (check_program.h) proves the rest of the order.
///
/// program   of a training step.
/// planned   the graph that the plan's stages count in.
/// map       one that passes its check; it says which bucket has which use.
/// Errors    kInvalidArgument naming rank, parameter or bucket.
/// Cost      linear in nodes, uses x logarithm, and operations x the buckets of a stage.
void check_parameters(const StepProgram& program, const graph::Graph& planned,
                      const layout::Plan& plan, const layout::ParameterMap& map);

}  // namespace trireme::schedule
