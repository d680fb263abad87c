#include "trireme/plan/partition/block_graph.h"

#include <algorithm>
#include <set>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/node_order.h"

namespace trireme::partition {

BlockGraph::BlockGraph(const graph::Graph& recorded, const profile::Profile& profile,
                       std::span<const graph::NodeId> copied)
    : recorded_(recorded) {
  const std::vector<bool> allowed = graph::allowed_cuts(recorded);
  const std::vector<profile::NodeTime> times = profile::node_times(profile, recorded);
  const auto num_nodes = static_cast<int>(recorded.nodes.size());
  std::vector<int> block_of;
  for (int p = 0; p < num_nodes; ++p) {
    if (p == 0 || allowed[p]) blocks_.push_back({.begin = p, .end = p});
    Block& block = blocks_.back();
    block.end = p + 1;
    block.work_us += times[p].forward_us + times[p].backward_us();
    block.lead_us += times[p].forward_us + times[p].input_us;
    block_of.push_back(static_cast<int>(blocks_.size()) - 1);
  }
  std::vector<std::set<int>> after(blocks_.size());
  const std::vector<std::vector<int>> later = graph::later_nodes(recorded, copied);
  for (int p = 0; p < num_nodes; ++p) {
    for (const int q : later[p]) {
      if (block_of[q] != block_of[p]) after[block_of[p]].insert(block_of[q]);
    }
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].after.assign(after[b].begin(), after[b].end());
    for (const int other : after[b]) blocks_[other].before.push_back(static_cast<int>(b));
  }
  std::vector<int> makers(recorded.values.size(), -1);  // blocks
  for (int p = 0; p < num_nodes; ++p) {
    for (const graph::ValueId id : graph::input_values(recorded.nodes[p])) {
      const int maker = makers[id];
      if (maker < 0 || maker == block_of[p] || !recorded.values[id].requires_grad) continue;
      if (std::ranges::count(blocks_[maker].feeds, block_of[p]) == 0) {
        blocks_[maker].feeds.push_back(block_of[p]);
      }
    }
    for (const graph::ValueId id : recorded.nodes[p].outputs) {
      if (id >= 0) makers[id] = block_of[p];
    }
  }
}

bool BlockGraph::has_orders() const {
  return static_cast<int>(blocks_.size()) <= kMostOrderedBlocks && !is_chain();
}

bool BlockGraph::is_chain() const {
  for (std::size_t b = 0; b + 1 < blocks_.size(); ++b) {
    const std::vector<int>& after = blocks_[b].after;
    if (after.empty() || after.front() != static_cast<int>(b) + 1) return false;
  }
  return true;
}

std::vector<graph::NodeId> BlockGraph::nodes(const std::vector<int>& order) const {
  std::vector<graph::NodeId> ids;
  for (const int b : order) {
    for (int p = blocks_[b].begin; p < blocks_[b].end; ++p) ids.push_back(recorded_.nodes[p].id);
  }
  return ids;
}

}  // namespace trireme::partition
