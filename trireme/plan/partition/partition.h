#pragma once

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/options.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// The plan that trains `recorded` best on `topology`: stages, schedule, copies, prediction.
///
/// For each schedule and each group of copied nodes that may pay, cuts are searched (search.h),
/// judged by an estimate that equals the simulator's forecast. Deterministic: the same inputs give
/// the same bytes.
///
/// recorded   as it was recorded; passes graph::check.
/// profile    of this graph, at the batch's microbatch size.
/// topology   has at least stages x replicas ranks; the first of them are used, stage by stage.
/// Returns    a plan that passes layout::check and names its graph, profile and topology.
/// Errors     kInvalidArgument where these do not fit each other or the graph has too few allowed
///            cuts; kResourceExhausted where no plan fits into the memory, saying by how much, on
///            which stage, what takes it and what would help.
/// Cost       2 n^2 / p steps of the DP, then an estimate for each move of a cut, limited in number:
///            1,000 nodes in 64 stages some 2 s, 10,000 some 10 s.
layout::Plan partition(const graph::Graph& recorded, const profile::Profile& profile,
                       const topology::Topology& topology, const PartitionOptions& options);

}  // namespace trireme::partition
