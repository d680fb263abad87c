#pragma once

#include <random>
#include <vector>

#include "tests/plans/chain_model.h"

namespace trireme::layout::testing {

/// Nodes over random earlier values, some views, some without gradient, some with parameters, which
/// several nodes may use or which are frozen; random costs, links of both kinds.
Model random_model(std::mt19937& random, int num_nodes);

/// Ranks with cores of their own on 1 to `max_hosts` machines, in order.
topology::Topology random_topology(std::mt19937& random, int num_ranks, int max_hosts);

/// Allowed cuts, up to `most` of them.
std::vector<int> random_cuts(std::mt19937& random, const graph::Graph& graph, int most);

}  // namespace trireme::layout::testing
