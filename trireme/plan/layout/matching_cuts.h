#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Cuts of another recording of the same model (in eval mode) such that each of its nodes finds the
/// parameters and buffers that it uses in its stage: those that the stages of `plan` hold. Of the
/// places where a cut may fall, the one with the fewest bytes to send.
///
/// planned   the graph that `plan` is of, with its copies.
/// Errors    kInvalidArgument, naming the node, where there is no such place: `other` uses
///           parameters in another order.
std::vector<int> matching_cuts(const graph::Graph& planned, const Plan& plan,
                               const graph::Graph& other);

}  // namespace trireme::layout
