#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// What `front` may vary beside numbers of replicas and stages, schedules and recomputed stages.
struct FrontOptions {
  PartitionOptions plan;  ///< What it fixes is kept; `objective` and `max_slowdown` mean nothing.
  std::vector<int> stages_per_rank = {1, 2};
  bool may_shard = true;  ///< Replicas may share the optimizer's state, and parameters too.
};

/// Plans of which none is beaten by another in both the step and the peak, the fastest first. Steps that differ by a
/// thousandth count as the same.
///
/// For each number of replicas and of stages on a rank: the fastest plan, the one of least memory, and the fastest within
/// several sizes between the least and the most that was found; without copied nodes also with what replicas can share.
/// Every plan is one of `partition`, of a number of replicas for which results are the same bits.
///
/// Errors   those of `partition_over_replicas` where there is no plan at all.
/// Cost     some 10 plans for each combination.
std::vector<layout::Plan> front(const graph::Graph& recorded, const profile::Profile& profile,
                                const topology::Topology& topology, const FrontOptions& options);

/// The plans as a table for people, and a picture of their steps and peaks.
///
/// plans   with predictions.
std::string show_front(const std::vector<layout::Plan>& plans);

}  // namespace trireme::partition
