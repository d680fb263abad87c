#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// `schedule interleaved`, with its parameters; and what balanced the stages, if no search did.
std::string schedule_text(const Plan& plan);

/// The plan as tables for people: batch, roles, stages with their first and last nodes, number of
/// parameters, bytes received per microbatch and copies; tie owners; the prediction if there is
/// one.
///
/// plan    one that passes `check` against `graph`.
std::string show(const Plan& plan, const graph::Graph& graph);

/// What can be said without the graph: of stages only their positions. Any plan is safe to pass in.
std::string show(const Plan& plan);

/// The map as tables for people: its buckets, then the slots of each. Any map is safe to pass in.
std::string show(const ParameterMap& map);

}  // namespace trireme::layout
