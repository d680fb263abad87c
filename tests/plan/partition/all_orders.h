#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/plan/partition/search_cases.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/partition/block_graph.h"

namespace trireme::partition::testing {

/// All sets of nodes that stages can be, in any order, under all schedules, in the simulator: the shortest step.
class BestOfAllOrders {
 public:
  explicit BestOfAllOrders(const Problem& problem)
      : problem_(problem),
        graph_(problem.recorded, problem.profile),
        stage_of_(graph_.blocks().size(), 0) {}

  double step_us() {
    give_out(0);
    return best_us_;
  }

 private:
  /// A stage for each block from `block` on, none before one of those that must run before it.
  void give_out(std::size_t block) {
    const auto& blocks = graph_.blocks();
    if (block == blocks.size()) return try_stages();
    int first = 0;
    for (const int before : blocks[block].before) first = std::max(first, stage_of_[before]);
    for (int s = first; s < problem_.num_stages; ++s) {
      stage_of_[block] = s;
      give_out(block + 1);
    }
  }

  void try_stages() {
    std::vector<int> order, cuts;
    for (int s = 0; s < problem_.num_stages; ++s) {
      double work_us = 0;
      int num_nodes = cuts.empty() ? 0 : cuts.back();
      for (std::size_t b = 0; b < stage_of_.size(); ++b) {
        if (stage_of_[b] != s) continue;
        order.push_back(static_cast<int>(b));
        const BlockGraph::Block& block = graph_.blocks()[b];
        work_us += block.work_us;
        num_nodes += block.end - block.begin;
      }
      const bool is_empty = num_nodes == (cuts.empty() ? 0 : cuts.back());
      const auto m = static_cast<double>(problem_.num_microbatches());
      if (is_empty || m * work_us / problem_.most_speed(s) > best_us_) return;
      cuts.push_back(num_nodes);
    }
    cuts.pop_back();
    const std::vector<graph::NodeId> nodes = graph_.nodes(order);
    const graph::Graph planned = graph::reordered(problem_.recorded, nodes);
    for (const std::string& schedule : schedule::schedule_names(1)) {
      const Candidate candidate = evaluate(problem_, {schedule, {}, planned, nodes}, cuts);
      best_us_ = std::min(best_us_, candidate.forecast.simulation.step_us);
    }
  }

  const Problem problem_;
  BlockGraph graph_;
  std::vector<int> stage_of_;  ///< By block.
  double best_us_ = kUnlimited;
};

/// Plans random graphs with branches, in the recorded order and in any, in 2 to `max_stages` stages.
///
/// recorded, plans   get how far their steps are from the best of all orders.
inline void add_orders(std::mt19937& random, int max_nodes, int max_stages, int num_problems,
                       Gaps& recorded, Gaps& plans) {
  while (plans.num_cases < num_problems) {
    SearchCase one = random_search_case(random, max_nodes);
    one.options.placement = Placement::kCluster;
    one.num_stages = one.options.stages = 2 + static_cast<int>(random() % (max_stages - 1));
    one.topology =
        layout::testing::random_topology(random, one.num_stages * one.options.replicas, 4);
    const BlockGraph blocks(one.model.graph, one.model.profile);
    if (!has_plans(one) || blocks.is_chain()) continue;
    const double best_us = BestOfAllOrders(one.problem()).step_us();
    for (const bool may_reorder : {false, true}) {
      one.options.may_reorder = may_reorder;
      const layout::Plan plan =
          partition(one.model.graph, one.model.profile, one.topology, one.options);
      (may_reorder ? plans : recorded).add(1000 * plan.prediction->step_ms, best_us);
    }
  }
}

}  // namespace trireme::partition::testing
