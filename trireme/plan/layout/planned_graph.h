#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// The graph whose positions the stages of `plan` count: the recorded one after the copies of
/// `plan.copied_nodes`.
///
/// Errors   those of graph::copy_to_consumers.
graph::Graph planned_graph(const graph::Graph& recorded, const Plan& plan);

}  // namespace trireme::layout
