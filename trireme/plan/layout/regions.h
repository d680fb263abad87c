#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// A plan in which each region of a stage that recomputes is a stage: what crosses regions, and which of them take it,
/// is then what crosses stages.
struct RegionPlan {
  Plan plan;                ///< Nothing recomputes in it, and no stage owns a parameter of several.
  std::vector<int> firsts;  ///< By stage of the original: index of its first region; at the end,
                            ///< their number.

  /// The regions of a stage of the original, by index in `plan`, are [begin, end).
  int begin(int stage) const { return firsts[static_cast<std::size_t>(stage)]; }
  int end(int stage) const { return firsts[static_cast<std::size_t>(stage) + 1]; }
};

/// Each region has those of its stage's copies that it needs; a stage without regions is one.
///
/// planned   the graph whose positions the plan counts.
/// Cost      linear in nodes and arguments.
RegionPlan regions_as_stages(const graph::Graph& planned, const Plan& plan);

/// By stage: positions of the nodes of each of its regions, in the order in which they run.
std::vector<std::vector<std::vector<int>>> region_positions(const graph::Graph& planned,
                                                            const Plan& plan);

}  // namespace trireme::layout
