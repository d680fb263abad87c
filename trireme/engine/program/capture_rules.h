#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// Why a replay of the calls that this node makes below autograd might not do what the node does at the next
/// microbatch, even if it did at two; empty where it always does. What the calls themselves show, the recorder of calls
/// refuses.
///
/// Code above them may read tensors by pointers: lengths of sequences, sections of a split. So an operator that torch
/// composes of others may take integers only where it is known to hand them on; one of another library may do anything.
std::string why_not_captured(const graph::Graph& graph, const graph::Node& node);

}  // namespace trireme::program
