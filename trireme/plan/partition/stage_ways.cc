#include "trireme/plan/partition/stage_ways.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "trireme/plan/partition/set_cost.h"
#include "trireme/plan/partition/stage_ranges.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

constexpr double kRoundedDown = 1 - 1e-9;  // Sums in another order.

struct Promise {
  double step_us = 0;
  StageWay way;
  auto operator<=>(const Promise&) const = default;
};

/// Those that promise most of all that are offered.
class BestWays {
 public:
  explicit BestWays(std::size_t most) : most_(most) {}

  /// Longer steps are not kept.
  double most_us() const { return kept_.size() < most_ ? kUnlimited : kept_.front().step_us; }

  void offer(double step_us, const StageWay& way) {
    if (step_us >= most_us()) return;
    if (kept_.size() == most_) {
      std::ranges::pop_heap(kept_);
      kept_.pop_back();
    }
    kept_.push_back({step_us, way});
    std::ranges::push_heap(kept_);
  }

  std::vector<StageWay> sorted() {
    std::ranges::sort(kept_);
    std::vector<StageWay> ways;
    for (Promise& promise : kept_) ways.push_back(std::move(promise.way));
    return ways;
  }

 private:
  std::size_t most_;
  std::vector<Promise> kept_;  ///< A heap: the worst first.
};

class WayLister {
 public:
  WayLister(const Problem& problem, const Setting& setting, const BlockGraph& graph,
            const WayRules& rules)
      : blocks_(graph.blocks()),
        rules_(rules),
        num_stages_(problem.num_stages),
        num_microbatches_(static_cast<double>(problem.num_microbatches())),
        splits_(schedule::splits_backwards(make_schedule(problem, setting))),
        costs_(problem.recorded, problem.profile, range_rules(problem, setting)),
        with_messages_(rules.num_kept),
        without_(rules.num_kept),
        way_(blocks_.size(), 0),
        num_blocks_(num_stages_, 0),
        work_us_(num_stages_, 0) {
    for (int s = 0; s < num_stages_; ++s) slowness_.push_back(1 / problem.most_speed(s));
  }

  std::vector<StageWay> list() {
    give_out(0);
    if (num_tried_ > rules_.most_tried) return {};
    std::vector<StageWay> ways = with_messages_.sorted();
    for (StageWay& way : without_.sorted()) {
      if (std::ranges::count(ways, way) == 0) ways.push_back(std::move(way));
    }
    return ways;
  }

 private:
  double most_us() const {
    return std::min(rules_.most_us, std::max(with_messages_.most_us(), without_.most_us()));
  }

  void give_out(std::size_t b) {
    if (b == blocks_.size()) return keep();
    int first = 0;
    for (const int before : blocks_[b].before) first = std::max(first, way_[before]);
    for (int s = first; s < num_stages_; ++s) {
      if (++num_tried_ > rules_.most_tried) return;
      const double before_us = work_us_[s];
      work_us_[s] += blocks_[b].work_us * slowness_[s];
      if (num_microbatches_ * work_us_[s] * kRoundedDown < most_us()) {
        way_[b] = s;
        ++num_blocks_[s];
        give_out(b + 1);
        --num_blocks_[s];
      }
      work_us_[s] = before_us;
    }
  }

  /// The way, where it is among the best.
  void keep() {
    if (std::ranges::count(num_blocks_, 0) > 0) return;
    std::vector<SetTime> times;
    for (const double us : work_us_) times.push_back({.work_us = us});
    const double least_us = step_us(times) * kRoundedDown;
    if (least_us >= most_us()) return;
    without_.offer(least_us, way_);
    if (least_us < with_messages_.most_us()) with_messages_.offer(step_us(stage_times()), way_);
  }

  /// By stage, messages counted.
  std::vector<SetTime> stage_times() {
    std::vector<SetTime> times;
    std::vector<bool> is_done(blocks_.back().end);
    for (int s = 0; s < num_stages_; ++s) {
      std::vector<int> positions;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        if (way_[b] != s) continue;
        for (int p = blocks_[b].begin; p < blocks_[b].end; ++p) {
          positions.push_back(p);
          is_done[p] = true;
        }
      }
      times.push_back(costs_.time(positions, is_done, s));
    }
    return times;
  }

  double step_us(const std::vector<SetTime>& times) const {
    std::vector<double> once_us(num_stages_, 0), lead_us(num_stages_, 0);
    std::vector<bool> feeds(num_stages_ * num_stages_);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const int stage = way_[b];
      once_us[stage] += (splits_ ? blocks_[b].lead_us : blocks_[b].work_us) * slowness_[stage];
      for (const int fed : blocks_[b].feeds) feeds[stage * num_stages_ + way_[fed]] = true;
    }
    double most_us = 0;
    for (int s = 0; s < num_stages_; ++s) {
      for (int r = 0; r < s; ++r) {
        if (!feeds[r * num_stages_ + s]) continue;
        lead_us[s] = std::max(lead_us[s], lead_us[r] + once_us[r] + times[r].gradients_us);
      }
      lead_us[s] += times[s].values_us;
      most_us = std::max(most_us, lead_us[s] + num_microbatches_ * times[s].slowest_us());
    }
    return most_us;
  }

  const std::vector<BlockGraph::Block>& blocks_;
  const WayRules& rules_;
  int num_stages_;
  double num_microbatches_;
  bool splits_;  ///< The schedule, backwards.
  SetCost costs_;
  std::vector<double> slowness_;  ///< By stage.
  BestWays with_messages_, without_;
  StageWay way_;
  std::vector<int> num_blocks_;  ///< By stage.
  std::vector<double> work_us_;  ///< By stage: of a microbatch.
  std::int64_t num_tried_ = 0;
};

}  // namespace

std::vector<graph::NodeId> nodes_of(const BlockGraph& graph, const StageWay& way, int num_stages) {
  std::vector<int> order;
  for (int s = 0; s < num_stages; ++s) {
    for (std::size_t b = 0; b < way.size(); ++b) {
      if (way[b] == s) order.push_back(static_cast<int>(b));
    }
  }
  return graph.nodes(order);
}

std::vector<int> cuts_of(const BlockGraph& graph, const StageWay& way, int num_stages) {
  std::vector<int> sizes(num_stages), cuts;
  for (std::size_t b = 0; b < way.size(); ++b) {
    sizes[way[b]] += graph.blocks()[b].end - graph.blocks()[b].begin;
  }
  int end = 0;
  for (int s = 0; s + 1 < num_stages; ++s) cuts.push_back(end += sizes[s]);
  return cuts;
}

std::vector<StageWay> promising_ways(const Problem& problem, const Setting& setting,
                                     const BlockGraph& graph, const WayRules& rules) {
  return WayLister(problem, setting, graph, rules).list();
}

}  // namespace trireme::partition
