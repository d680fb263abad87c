// The half of Planner about orders of nodes: which graph is cut.

#include "trireme/plan/partition/node_orders.h"
#include "trireme/plan/partition/planner.h"
#include "trireme/plan/partition/stage_moves.h"

namespace trireme::partition {
namespace {

constexpr int kMostRoundsOfMoves = 3;
/// Schedules whose best step is further from the best of all do not come to it by moves.
constexpr double kNearby = 1.1;

}  // namespace

/// Under the best schedule so far, and where that is better now under all.
void Planner::try_node_orders(int num_stages) {
  const PartitionOptions& options = problem_.options;
  const Best* before = best_of(num_stages);
  if (!reorders_ || num_stages < 2 || before == nullptr) return;
  const std::string schedule = settings_[before->setting]->schedule;
  for (const std::vector<graph::NodeId>& order :
       node_orders(problem(*before), {schedule, {}, problem_.recorded})) {
    const Passes passes{order, options.copied_nodes.value_or(std::vector<graph::NodeId>())};
    const std::size_t reordered = setting(schedule, passes);
    try_setting(num_stages, reordered);
    if (best_of(num_stages)->setting != reordered) continue;
    for (const std::string& other : schedules_) {
      if (other != schedule) try_setting(num_stages, setting(other, passes));
    }
  }
  PromisingWays promising;
  for (int round = 0; round < kMostRoundsOfMoves; ++round) {
    if (!try_stage_moves(num_stages, promising)) return;
  }
}

/// Whether an order in which nodes have moved to other stages is better than the best, from that of each schedule.
bool Planner::try_stage_moves(int num_stages, PromisingWays& promising) {
  const Score before = best_of(num_stages)->found.score;
  std::vector<std::string> starts = {settings_[best_of(num_stages)->setting]->schedule};
  for (const std::string& other : schedules_) {
    if (other != starts[0]) starts.push_back(other);
  }
  for (const std::string& start : starts) {
    const auto own = bests_.find({num_stages, start});
    if (own == bests_.end() || own->second.found.score.primary > kNearby * before.primary) continue;
    const Best from = own->second;
    const std::vector<graph::NodeId> order = order_of_better_stages(
        problem(from), *settings_[from.setting], from.found, goal_, promising);
    if (order.empty()) continue;
    for (const std::string& schedule : schedules_) {
      try_setting(num_stages, setting(schedule, {order, {}}));
    }
  }
  return is_better(best_of(num_stages)->found.score, before);
}

const graph::Graph& Planner::graph_after(const Passes& passes) {
  if (passes == Passes{}) return problem_.recorded;
  for (const auto& known : graphs_) {
    if (known->passes == passes) return known->graph;
  }
  graphs_.push_back(std::make_unique<PassedGraph>(PassedGraph{
      passes, layout::planned_graph(problem_.recorded, passes.node_order, passes.copied)}));
  return graphs_.back()->graph;
}

}  // namespace trireme::partition
