#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Another recording of the same model in eval mode, as it is cut and run where `plan` is trained with. Nothing of it wants a
/// gradient, and where the plan's nodes do not run as they were recorded, its nodes are in an order in which it can be cut as
/// the plan is: each in the first stage that may run it. That order need not be one of a training: without dropout two
/// uses of a value may be recorded the other way round than a plan has them.
///
/// planned   the graph that `plan` is of, in its order and with its copies.
/// Cost      linear in nodes and arguments.
graph::Graph matching_graph(const graph::Graph& planned, const Plan& plan,
                            const graph::Graph& other);

/// Cuts of another recording of the same model (in eval mode) such that each of its nodes finds the
/// parameters and buffers that it uses in its stage: those that the stages of `plan` hold. Of all
/// such cuts, those that leave the fewest stages without nodes, and of these those with the fewest bytes to send.
///
/// planned   as for `matching_graph`, which made `other`.
/// Returns   cuts in ascending order; two are equal where the stage between them has nothing to run, as one that has
///           only dropout or a counter of batches.
/// Errors    kInvalidArgument, naming a node, where there are none: `other` uses parameters in
///           another order.
/// Cost      linear in stages x nodes, beside that of allowed_cuts.
std::vector<int> matching_cuts(const graph::Graph& planned, const Plan& plan,
                               const graph::Graph& other);

/// `plan` for another recording, cut by `matching_cuts`. A stage may be empty, which `layout::check` refuses: a plan to
/// evaluate with, not one to keep.
Plan matching_plan(const graph::Graph& planned, const Plan& plan, const graph::Graph& other);

}  // namespace trireme::layout
