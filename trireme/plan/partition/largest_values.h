#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::partition {

/// The largest tensors of a stage, at most three, the largest first: `embedding.weight 12.5 MiB, of each microbatch
/// encoder.0/softmax 4.0 MiB`. Parameters by name, what its nodes make by theirs; views are none.
///
/// planned   the graph with the plan's copies, which passed layout::check.
/// Cost      linear in the nodes of the stage.
std::string largest_values(const graph::Graph& planned, const layout::Plan& plan, int stage);

}  // namespace trireme::partition
