#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/partition/block_graph.h"

namespace trireme::partition {

/// Orders of the blocks, each of them once, that cuts may suit better than the recorded one; that is not among them.
///
///  * one branch after another, of those that begin the one with the longest way to the end first: few values cross a cut;
///  * those blocks first that leave the fewest bytes to be used later;
///  * by the longest way to a block: branches side by side, so that a cut takes a part of each.
///
/// microbatch   samples, of which values have their bytes.
/// Cost         blocks x the most that are ready at once.
std::vector<std::vector<int>> linear_orders(const BlockGraph& graph, std::int64_t microbatch);

}  // namespace trireme::partition
