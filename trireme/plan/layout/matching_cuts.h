#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Ids of the nodes of another recording of the same model (in eval mode) in an order in which it is cut as `plan` is: each
/// node is in the first stage that may run it. For plans whose nodes do not run as they were recorded.
///
/// planned   the graph that `plan` is of, in its order and with its copies.
/// Cost      linear in nodes and arguments.
std::vector<graph::NodeId> matching_order(const graph::Graph& planned, const Plan& plan,
                                          const graph::Graph& other);

/// Cuts of another recording of the same model (in eval mode) such that each of its nodes finds the
/// parameters and buffers that it uses in its stage: those that the stages of `plan` hold. Of all
/// such cuts, those with the fewest bytes to send; each stage has a node.
///
/// planned   as for `matching_order`.
/// Errors    kInvalidArgument, naming a node, where there are none: `other` uses parameters in
///           another order, or has nothing for a stage.
/// Cost      linear in stages x nodes, beside that of allowed_cuts.
std::vector<int> matching_cuts(const graph::Graph& planned, const Plan& plan,
                               const graph::Graph& other);

}  // namespace trireme::layout
