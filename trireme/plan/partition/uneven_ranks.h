#pragma once

#include <optional>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// The fastest plan whose positions have different numbers of ranks (rank_divisions.h) that is found, where one is faster
/// than `most_us`: of the divisions whose slowest rank has least to do some are forecast, under each schedule, and the cuts
/// of the best few are moved. Where ranks may stay idle, fewer
/// ranks are tried as well, each number by itself: so a rank more never gives a longer step.
///
/// recorded, profile, topology, options   that `partition` has found right. Up to 16 ranks are used.
/// Returns   nothing where none is faster or fits, and where the options ask for what only even plans have: several stages
///           on a rank, shards, cuts, another objective, balance or placement than speed, search and spread.
/// Cost      for each number of ranks some 2,000 forecasts of short graphs, of long ones and long batches some 100.
std::optional<layout::Plan> fastest_uneven(const graph::Graph& recorded,
                                           const profile::Profile& profile,
                                           const topology::Topology& topology,
                                           const PartitionOptions& options, double most_us);

}  // namespace trireme::partition
