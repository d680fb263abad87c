#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// Orders of the recorded nodes, other than the recorded one, that give the same bits and in which the slowest stage can be
/// clearly faster, memory kept: the best first. None where the recorded order is near what no order beats, or the only one.
///
/// Tried are those of linear_orders.h and, where few branches run side by side, the best of all (downsets.h).
///
/// setting   of the recorded graph, without copies.
/// Cost      the DP (chain.h) for each order; the search of downsets, limited.
std::vector<std::vector<graph::NodeId>> node_orders(const Problem& problem, const Setting& setting);

}  // namespace trireme::partition
