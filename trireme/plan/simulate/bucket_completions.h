#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/parameters/parameter_map.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::simulate {

/// When the gradients of each bucket of the map are complete: after which part of a backward of its
/// stage, 0 to 1. The backward runs the stage's nodes in reverse; a use site has its gradient once
/// the first node that uses it has run, and then adds it.
///
/// planned, plan, map   as for schedule::make_step_program.
/// Errors               those of profile::node_times.
/// Cost                 linear in nodes and sites.
std::vector<double> bucket_completions(const graph::Graph& planned, const layout::Plan& plan,
                                       const parameters::ParameterMap& map,
                                       const profile::Profile& profile);

}  // namespace trireme::simulate
