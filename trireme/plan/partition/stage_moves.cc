#include "trireme/plan/partition/stage_moves.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/partition/block_graph.h"
#include "trireme/plan/partition/judge.h"
#include "trireme/plan/partition/stage_ways.h"
#include "trireme/plan/simulate/crowded_cores.h"

namespace trireme::partition {
namespace {

/// All graphs that are tried have about so many nodes together.
constexpr std::int64_t kMostNodes = 15'000, kMostNodesCrowded = 4'000;
constexpr std::int64_t kLeastMoves = 8, kMostMoves = 200, kMostWays = 1000;
constexpr std::size_t kKeptWays = 100;  ///< For the other schedules.
/// Of an even stage's work. Blocks with less are not moved.
constexpr double kWorthMoving = 0.01;

bool is_crowded(const Problem& problem) {
  const int num_ranks = problem.num_positions() * problem.options.replicas;
  return !simulate::crowded_cores(problem.topology, num_ranks).empty();
}

class StageMover {
 public:
  StageMover(const Problem& problem, const Setting& setting, const BlockGraph& graph,
             const Goal& goal)
      : problem_(problem),
        setting_(setting),
        graph_(graph),
        planned_(problem.recorded),
        goal_(goal) {
    const auto num_nodes = static_cast<std::int64_t>(problem.recorded.nodes.size());
    if (is_crowded(problem)) most_nodes_ = kMostNodesCrowded;
    num_left_ = std::clamp(most_nodes_ / num_nodes, kLeastMoves, kMostMoves);
    for (const BlockGraph::Block& block : graph.blocks()) least_us_ += block.work_us;
    least_us_ *= kWorthMoving / problem.num_stages;
  }

  std::vector<graph::NodeId> better_order(const Search::Found& found, PromisingWays& promising) {
    read_stages(found.cuts);
    known_.insert(stage_of_);
    best_ = found.score;
    bool has_found = goal_.objective == Objective::kSpeed && try_ways(promising);
    while (move_one()) has_found = true;
    return has_found ? nodes() : std::vector<graph::NodeId>();
  }

 private:
  void read_stages(const std::vector<int>& cuts) {
    std::unordered_map<graph::NodeId, int> positions;
    for (int p = 0; p < static_cast<int>(setting_.planned.nodes.size()); ++p) {
      positions[setting_.planned.nodes[p].id] = p;
    }
    for (const BlockGraph::Block& block : graph_.blocks()) {
      const int position = positions.at(problem_.recorded.nodes[block.begin].id);
      stage_of_.push_back(
          static_cast<int>(std::ranges::upper_bound(cuts, position) - cuts.begin()));
    }
  }

  /// Whether one of them is better. Where they are not known yet, all are listed, and those kept that are best.
  bool try_ways(PromisingWays& promising) {
    const bool are_known = promising.has_value();
    if (!are_known) promising = listed_ways();
    std::vector<std::pair<Score, StageWay>> tried;
    bool has_found = false;
    for (const StageWay& way : *promising) {
      if (is_too_slow(way) || !known_.insert(way).second) continue;
      const Tried one(*this, way);
      const Score now = one.quick_score();
      if (is_better(now, best_)) {
        take(way, one.score());
        has_found = true;
      }
      tried.emplace_back(now, way);
    }
    if (are_known) return has_found;
    std::ranges::sort(tried);
    promising->clear();
    for (std::size_t i = 0; i < std::min(tried.size(), kKeptWays); ++i) {
      promising->push_back(std::move(tried[i].second));
    }
    return has_found;
  }

  std::vector<StageWay> listed_ways() const {
    const auto num_nodes = static_cast<std::int64_t>(problem_.recorded.nodes.size());
    const auto num_kept = static_cast<std::size_t>(
        std::clamp<std::int64_t>(most_nodes_ / num_nodes, kLeastMoves, kMostWays));
    const bool has_bound = best_.excess_bytes <= 0;
    return promising_ways(
        problem_, setting_, graph_,
        {.most_us = has_bound ? best_.primary : kUnlimited, .num_kept = num_kept});
  }

  bool move_one() {
    for (std::size_t b = 0; b < stage_of_.size() && num_left_ > 0; ++b) {
      if (move_alone(b) || move_with_others(b, 1) || move_with_others(b, -1)) return true;
    }
    return false;
  }

  /// To any stage that it can be in.
  bool move_alone(std::size_t b) {
    int first = 0, last = problem_.num_stages - 1;
    for (const int before : graph_.blocks()[b].before) first = std::max(first, stage_of_[before]);
    for (const int after : graph_.blocks()[b].after) last = std::min(last, stage_of_[after]);
    for (int stage = first; stage <= last; ++stage) {
      if (stage == stage_of_[b]) continue;
      StageWay stages = stage_of_;
      stages[b] = stage;
      if (try_stages(std::move(stages))) return true;
    }
    return false;
  }

  /// To the next stage with those of its own that run after it, or to the one before with those that run before it.
  bool move_with_others(std::size_t b, int direction) {
    const int own = stage_of_[b], to = own + direction;
    if (to < 0 || to >= problem_.num_stages) return false;
    StageWay stages = stage_of_;
    std::vector<std::size_t> moved = {b};
    stages[b] = to;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const BlockGraph::Block& block = graph_.blocks()[moved[i]];
      for (const int other : direction > 0 ? block.after : block.before) {
        if (stages[other] == own) {
          stages[other] = to;
          moved.push_back(other);
        }
      }
    }
    return moved.size() > 1 && try_stages(std::move(stages));
  }

  /// Takes them where they are better.
  bool try_stages(StageWay stages) {
    if (num_left_ <= 0) return false;
    double moved_us = 0;
    for (std::size_t b = 0; b < stages.size(); ++b) {
      if (stages[b] != stage_of_[b]) moved_us += graph_.blocks()[b].work_us;
    }
    if (moved_us < least_us_ || has_empty_stage(stages) || is_too_slow(stages)) return false;
    if (!known_.insert(stages).second) return false;
    --num_left_;
    const Tried one(*this, stages);
    if (!one.may_be_better(best_)) return false;
    const Score now = one.score();
    if (!is_better(now, best_)) return false;
    take(stages, now);
    return true;
  }

  bool has_empty_stage(const StageWay& stages) const {
    std::vector<bool> has_blocks(problem_.num_stages);
    for (const int stage : stages) has_blocks[stage] = true;
    return std::ranges::find(has_blocks, false) != has_blocks.end();
  }

  /// By the work of its slowest stage alone.
  bool is_too_slow(const StageWay& stages) const {
    const bool is_speed = goal_.objective == Objective::kSpeed;
    if (is_speed && best_.excess_bytes > 0) return false;
    std::vector<double> work_us(problem_.num_stages);
    for (std::size_t b = 0; b < stages.size(); ++b)
      work_us[stages[b]] += graph_.blocks()[b].work_us;
    double most_us = 0;
    for (int s = 0; s < problem_.num_stages; ++s) {
      most_us = std::max(most_us, work_us[s] / problem_.most_speed(s));
    }
    most_us *= static_cast<double>(problem_.num_microbatches());
    return most_us > (is_speed ? best_.primary : goal_.max_step_us);
  }

  const graph::Graph& in_order(std::span<const graph::NodeId> order) const {
    graph::put_in_order(planned_, order);
    return planned_;
  }

  /// The graph in an order in which these are its stages. One at a time.
  class Tried {
   public:
    Tried(const StageMover& mover, const StageWay& stages)
        : order_(nodes_of(mover.graph_, stages, mover.problem_.num_stages)),
          setting_{mover.setting_.schedule, {}, mover.in_order(order_), order_},
          judge_(mover.problem_, setting_),
          cuts_(cuts_of(mover.graph_, stages, mover.problem_.num_stages)) {
      judge_.begin(mover.goal_);
    }

    Score score() const { return judge_.score(cuts_); }

    /// Where they surely fit, the peak is left open.
    Score quick_score() const { return judge_.quickly_scored(cuts_).score; }

    /// Surely not, where it says no.
    bool may_be_better(const Score& best) const {
      return judge_.better(cuts_, {{}, best}).has_value();
    }

   private:
    std::vector<graph::NodeId> order_;
    Setting setting_;
    mutable Judge judge_;
    std::vector<int> cuts_;
  };

  void take(const StageWay& stages, const Score& now) {
    best_ = now;
    stage_of_ = stages;
  }

  std::vector<graph::NodeId> nodes() const {
    return nodes_of(graph_, stage_of_, problem_.num_stages);
  }

  const Problem& problem_;
  const Setting& setting_;
  const BlockGraph& graph_;
  mutable graph::Graph planned_;  ///< In the order that was tried last.
  Goal goal_;
  double least_us_ = 0;  ///< What has to be moved.
  StageWay stage_of_;
  std::set<StageWay> known_;
  Score best_;
  std::int64_t most_nodes_ = kMostNodes, num_left_ = 0;
};

}  // namespace

std::vector<graph::NodeId> order_of_better_stages(const Problem& problem, const Setting& setting,
                                                  const Search::Found& found, const Goal& goal,
                                                  PromisingWays& promising) {
  const BlockGraph graph(problem.recorded, problem.profile);
  if (!graph.has_orders() || !setting.copied_nodes.empty()) return {};
  return StageMover(problem, setting, graph, goal).better_order(found, promising);
}

}  // namespace trireme::partition
