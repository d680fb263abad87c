#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trireme/plan/partition/block_graph.h"
#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// By block: its stage. Every stage has a block, and none is before a stage of a block that must run first.
using StageWay = std::vector<int>;

/// Ids of the nodes, stage by stage, each as it was recorded.
std::vector<graph::NodeId> nodes_of(const BlockGraph& graph, const StageWay& way, int num_stages);

/// Where the stages begin in that order.
std::vector<int> cuts_of(const BlockGraph& graph, const StageWay& way, int num_stages);

struct WayRules {
  double most_us = kUnlimited;  ///< Steps that surely take longer are left out.
  std::size_t num_kept = 1000;  ///< By each of the two estimates.
  std::int64_t most_steps =
      4'000'000;  ///< Blocks that are given to stages, times those of the graph; then it gives up.
};

/// Of all ways to give blocks to stages those whose steps promise to be shortest, the best first. A step is taken to last, for
/// the stage that takes longest, as long as its microbatches and, once each, what it waits for before its first and after its last:
///
///     max over stages s of lead(s) + m time(s),   lead(s) = values(s) + max over r that feed s of lead(r) + work(r) + gradients(r)
///
/// times are those of SetCost, of a microbatch; values and gradients are messages. A second list, behind the first, is by work
/// alone: stages may run cheap nodes again instead of waiting for messages. Memory is not looked at.
///
/// setting   of the recorded graph, without copied nodes.
/// Returns   of too many ways to look at all, those whose steps are below a limit, up to which all were looked at; there may be none.
/// Cost      that of SetCost for all ways that no bound leaves out: stages that are too long as far as they are known, and
///           blocks without a stage that the stages they can still be in have no room for.
std::vector<StageWay> promising_ways(const Problem& problem, const Setting& setting,
                                     const BlockGraph& graph, const WayRules& rules);

}  // namespace trireme::partition
