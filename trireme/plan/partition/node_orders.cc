#include "trireme/plan/partition/node_orders.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/partition/block_graph.h"
#include "trireme/plan/partition/chain.h"
#include "trireme/plan/partition/downsets.h"
#include "trireme/plan/partition/linear_orders.h"
#include "trireme/plan/partition/range_cost.h"
#include "trireme/plan/partition/stage_ranges.h"

namespace trireme::partition {
namespace {

/// What another order must gain to be planned.
constexpr double kWorth = 0.99;
constexpr std::size_t kMostOrders = 2;

/// Of the cuts that make it least within the memory; infinity where there are none.
double slowest_stage_us(const Problem& problem, const Setting& setting) {
  RangeCost ranges(setting.planned, problem.profile, range_rules(problem, setting),
                   RangeGoal::kTime);
  ChainRules rules{graph::allowed_cuts(setting.planned), {}, {}};
  for (int s = 0; s < problem.num_stages; ++s) {
    rules.limits.push_back(static_cast<double>(problem.memory_limit(s)));
  }
  const std::optional<ChainCuts> chain = cut_chain(ranges, rules);
  return chain ? chain->cost : kUnlimited;
}

/// What no order beats: all work, dealt out as if it could be divided anyhow, and that of the largest block.
double least_stage_us(const BlockGraph& graph, const RangeRules& rules) {
  double work_us = 0, speed = 0, largest_us = 0;
  for (const BlockGraph::Block& block : graph.blocks()) {
    work_us += block.work_us;
    largest_us = std::max(largest_us, block.work_us);
  }
  for (const double slowness : rules.slowness) speed += 1 / slowness;
  return std::max(work_us / speed, largest_us * std::ranges::min(rules.slowness));
}

struct FoundOrder {
  double slowest_us = 0;
  std::vector<graph::NodeId> nodes;
};

/// Where the recorded order is not the best, that which is: stage by stage, each as it was recorded.
std::optional<std::vector<int>> downset_order(const BlockGraph& graph, const RangeRules& rules,
                                              SetCost& cost, double most_us) {
  const auto stages = cut_downsets(graph, cost,
                                   {.num_stages = static_cast<int>(rules.slowness.size()),
                                    .slowness = rules.slowness,
                                    .most_us = most_us});
  if (!stages) return std::nullopt;
  std::vector<int> order;
  for (const std::vector<int>& blocks : *stages) {
    order.insert(order.end(), blocks.begin(), blocks.end());
  }
  return order;
}

}  // namespace

std::vector<std::vector<graph::NodeId>> node_orders(const Problem& problem,
                                                    const Setting& setting) {
  const std::vector<graph::NodeId> copied =
      problem.options.copied_nodes.value_or(std::vector<graph::NodeId>());
  const BlockGraph graph(problem.recorded, problem.profile, copied);
  if (problem.num_stages < 2 || !graph.has_orders()) return {};
  const RangeRules rules = range_rules(problem, setting);
  const double recorded_us = slowest_stage_us(problem, setting);
  if (kWorth * recorded_us <= least_stage_us(graph, rules)) return {};
  std::vector<FoundOrder> found;
  const auto add = [&](const std::vector<int>& order) {
    FoundOrder one{0, graph.nodes(order)};
    const graph::Graph planned = graph::reordered(problem.recorded, one.nodes);
    one.slowest_us = slowest_stage_us(problem, {setting.schedule, {}, planned, one.nodes});
    if (one.slowest_us < kWorth * recorded_us) found.push_back(std::move(one));
  };
  for (const auto& order : linear_orders(graph, rules.microbatch)) add(order);
  double most_us = recorded_us;
  for (const FoundOrder& one : found) most_us = std::min(most_us, one.slowest_us);
  SetCost cost(problem.recorded, problem.profile, rules);
  if (const auto order = downset_order(graph, rules, cost, kWorth * most_us)) add(*order);
  std::ranges::stable_sort(found, {}, &FoundOrder::slowest_us);
  std::vector<std::vector<graph::NodeId>> orders;
  for (FoundOrder& one : found) {
    if (orders.size() < kMostOrders) orders.push_back(std::move(one.nodes));
  }
  return orders;
}

}  // namespace trireme::partition
