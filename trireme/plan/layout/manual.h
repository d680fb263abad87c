#pragma once

#include <span>
#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// A plan cut by hand: stages between `cuts`, one pipeline rank each, one replica, schedule
/// `simple`. No cut makes one stage.
///
/// cuts     positions in the execution order at which a stage begins, ascending.
/// Errors   those of `check`, which the result has passed.
Plan make_manual_plan(const graph::Graph& graph, const std::string& graph_sha256,
                      std::span<const int> cuts, const BatchLayout& batch);

/// The stage that runs the node at `position`. kInvalidArgument where none does.
int stage_of(const Plan& plan, int position);

/// The role `train`. kInvalidArgument where the plan has none.
const Role& train_role(const Plan& plan);

}  // namespace trireme::layout
