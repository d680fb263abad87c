#pragma once

#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/search.h"

namespace trireme::partition {

/// Order of the recorded nodes in which stages are better than those of `found`: blocks (block_graph.h), alone or with
/// those of their stage that run after or before them, have moved to other stages, as long as that helps. Empty where no move does.
///
/// setting   that `found` is of; without copied nodes.
/// Cost      an estimate of its own graph for each move, limited in number.
std::vector<graph::NodeId> order_of_better_stages(const Problem& problem, const Setting& setting,
                                                  const Search::Found& found, const Goal& goal);

}  // namespace trireme::partition
