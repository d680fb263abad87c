#pragma once

#include <optional>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/search.h"
#include "trireme/plan/partition/stage_ways.h"

namespace trireme::partition {

/// Those that were best under one schedule; not set: not listed yet.
using PromisingWays = std::optional<std::vector<StageWay>>;

/// Order of the recorded nodes in which stages are better than those of `found`. Of all ways to give blocks to stages those that
/// promise most (stage_ways.h) are estimated, if the goal is speed. From the best, blocks (block_graph.h), alone or with
/// those of their stage that run after or before them, move to other stages, as long as that helps. Empty where nothing is better.
///
/// setting     that `found` is of; without copied nodes.
/// promising   ways to try. Not set: all are listed, and those left here that are best, for other schedules.
/// Cost        an estimate of its own graph for each way and move, limited in number.
std::vector<graph::NodeId> order_of_better_stages(const Problem& problem, const Setting& setting,
                                                  const Search::Found& found, const Goal& goal,
                                                  PromisingWays& promising);

}  // namespace trireme::partition
