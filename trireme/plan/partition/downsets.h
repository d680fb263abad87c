#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trireme/plan/partition/block_graph.h"
#include "trireme/plan/partition/set_cost.h"

namespace trireme::partition {

struct DownsetRules {
  int num_stages = 1;
  std::vector<double> slowness;       ///< By stage: times that its work takes.
  double most_us = 0;                 ///< Stages that take as long are of no use.
  std::int64_t most_steps = 500'000;  ///< Of the search; more and it gives up.
};

/// Blocks by stage whose slowest stage is fastest, over all orders of the blocks and all cuts of these; nothing where every
/// one has a stage of `most_us` or more, or where there are too many to look at. Memory is not looked at.
///
/// What the first stages run is a downset: a set with all that must run before its blocks. With T[s][D] the least slowest
/// stage where s stages run D:
///
///     T[s][D'] = min over D within D' of max(T[s-1][D], time of D' without D as stage s)
///
/// Sets that take longer than the best known stage, or leave more than the other stages can do, are left out.
/// Tarnawski, Phanishayee, Devanur, Mahajan, Paravecino: Efficient algorithms for device placement of DNN graph operators,
/// NeurIPS 2020, section 4.
///
/// cost   of the graph's nodes.
/// Cost   pairs of downsets within each other, few where few branches run side by side.
std::optional<std::vector<std::vector<int>>> cut_downsets(const BlockGraph& graph, SetCost& cost,
                                                          const DownsetRules& rules);

}  // namespace trireme::partition
