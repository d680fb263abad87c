#pragma once

#include <optional>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// Positions of the pipeline with different numbers of ranks: where a stage cannot be cut, or few cuts are even, more ranks
/// run it. Two ranks for the first of two stages, one for the second, where that has half the work:
///
///     ranks by position   2 1        two replicas: the last rank runs its stage for both
///
/// The data replicas are as many as the position with most ranks has; every other number divides it.
using RanksByPosition = std::vector<int>;

/// All ways to give `num_ranks` ranks to the positions of a pipeline that keep the bits of one rank, or as many as are
/// looked at: but for those with as many ranks everywhere. In the order of their numbers of positions.
///
/// most_positions   of the pipeline.
std::vector<RanksByPosition> uneven_divisions(const PartitionOptions& options, int num_ranks,
                                              int most_positions);

/// The fastest plan that is found of these, where one is faster than `most_us`: of the divisions whose slowest rank has
/// least to do a few are forecast, under each schedule, and the cuts of the best are moved. Where ranks may stay idle, fewer
/// ranks are tried as well, each number by itself: so a rank more never gives a longer step.
///
/// recorded, profile, topology, options   that `partition` has found right. Up to 16 ranks are used.
/// Returns   nothing where none is faster or fits, and where the options ask for what only even plans have: several stages
///           on a rank, shards, cuts, another objective, balance or placement than speed, search and spread.
/// Cost      at most some 100 forecasts for each number of ranks, of long graphs and batches fewer.
std::optional<layout::Plan> fastest_uneven(const graph::Graph& recorded,
                                           const profile::Profile& profile,
                                           const topology::Topology& topology,
                                           const PartitionOptions& options, double most_us);

}  // namespace trireme::partition
