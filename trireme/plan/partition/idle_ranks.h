#pragma once

#include <string>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// A line for people where the plan leaves ranks of the topology idle: how many it uses and, where replicas would use more and
/// the lanes alone kept these out, how many lanes to ask for. Empty where it uses all.
///
/// options   that the plan was made with.
std::string idle_ranks(const layout::Plan& plan, const topology::Topology& topology,
                       const PartitionOptions& options);

}  // namespace trireme::partition
