#include "trireme/plan/layout/regions.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::layout {
namespace {

/// The copies of `stage` that its nodes [begin, end) need, directly or for other copies.
std::vector<graph::NodeId> needed_copies(const graph::Graph& planned, const Stage& stage, int begin,
                                         int end) {
  if (stage.copies.empty()) return {};
  const auto positions = graph::node_positions(planned);
  std::set<graph::ValueId> wanted;
  const auto want = [&](int position) {
    for (const graph::ValueId id : graph::input_values(planned.nodes[position])) wanted.insert(id);
  };
  for (int position = begin; position < end; ++position) want(position);
  std::vector<graph::NodeId> needed;
  for (auto copy = stage.copies.rbegin(); copy != stage.copies.rend(); ++copy) {
    const graph::Node& node = planned.nodes[positions.at(*copy)];
    const bool is_wanted = std::ranges::any_of(
        node.outputs, [&](graph::ValueId id) { return id >= 0 && wanted.contains(id); });
    if (!is_wanted) continue;
    needed.push_back(*copy);
    want(positions.at(*copy));
  }
  std::ranges::reverse(needed);
  return needed;
}

}  // namespace

RegionPlan regions_as_stages(const graph::Graph& planned, const Plan& plan) {
  RegionPlan result{plan, {}};
  result.plan.stages.clear();
  result.plan.tie_owners.clear();
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    const Stage& stage = plan.stages[s];
    result.firsts.push_back(static_cast<int>(result.plan.stages.size()));
    std::vector<int> edges = stage.regions;
    edges.insert(edges.begin(), stage.begin);
    edges.push_back(stage.end);
    for (std::size_t r = 0; r + 1 < edges.size(); ++r) {
      Stage region{.begin = edges[r], .end = edges[r + 1], .copies = stage.copies};
      if (!stage.regions.empty()) {
        region.copies = needed_copies(planned, stage, region.begin, region.end);
      }
      region.position = position_of(plan, s);
      result.plan.stages.push_back(std::move(region));
    }
  }
  result.firsts.push_back(static_cast<int>(result.plan.stages.size()));
  return result;
}

std::vector<std::vector<std::vector<int>>> region_positions(const graph::Graph& planned,
                                                            const Plan& plan) {
  const RegionPlan regions = regions_as_stages(planned, plan);
  const std::vector<std::vector<int>> positions = stage_positions(planned, regions.plan);
  std::vector<std::vector<std::vector<int>>> result;
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    result.emplace_back(positions.begin() + regions.begin(s), positions.begin() + regions.end(s));
  }
  return result;
}

}  // namespace trireme::layout
