#pragma once

#include <vector>

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// Ways to put the first `num_ranks` ranks in the places of a pipeline and its replicas, as Problem::order: that of their
/// numbers first, as an empty one. Alone, where ranks are alike and on one host, or the options ask for kCluster.
///
/// Of up to 4 ranks all ways that differ in what stands where: speed, memory, which share a host, which share cores. Of more
/// the stages of a replica side by side, and fast or slow ones, and those of much or little memory, first.
std::vector<std::vector<int>> rank_orders(const Problem& problem, int num_ranks);

}  // namespace trireme::partition
