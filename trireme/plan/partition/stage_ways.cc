#include "trireme/plan/partition/stage_ways.h"

#include <algorithm>
#include <array>
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

/// What is known of a step once some blocks have a stage. All of it only grows, so that it bounds what the others make of it.
struct Bounds {
  std::vector<double> work_us;  ///< By stage: of a microbatch.
  std::vector<double> once_us;  ///< By stage: what those that it feeds wait for.
  std::vector<double> lead_us;  ///< By stage: before its first microbatch and after its last.
  std::vector<double>
      rest_us;  ///< By stage: work of blocks without one that can be in none before it.
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
        first_(blocks_.size(), 0),
        fed_by_(blocks_.size()),
        num_blocks_(num_stages_, 0),
        feeds_(static_cast<std::size_t>(num_stages_) * num_stages_, 0),
        is_done_(blocks_.back().end) {
    for (int s = 0; s < num_stages_; ++s) slowness_.push_back(1 / problem.most_speed(s));
    const std::vector<double> zeros(num_stages_, 0);
    bounds_.assign(blocks_.size() + 1, {zeros, zeros, zeros, zeros});
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      bounds_[0].rest_us[0] += blocks_[b].work_us;
      for (const int fed : blocks_[b].feeds) fed_by_[fed].push_back(static_cast<int>(b));
    }
  }

  /// Short steps are looked for first: where there are enough of them, the limit leaves out most of the rest.
  std::vector<StageWay> list() {
    double speed = 0;
    for (const double slowness : slowness_) speed += 1 / slowness;
    most_tried_ = rules_.most_steps / static_cast<std::int64_t>(blocks_.size());
    rounding_us_ = bounds_[0].rest_us[0] * (1 - kRoundedDown);
    const double even_us = num_microbatches_ * bounds_[0].rest_us[0] / speed;
    std::vector<StageWay> ways;
    for (const double times : kLimits) {
      limit_us_ = std::min(rules_.most_us, times * even_us);
      with_messages_ = without_ = BestWays(rules_.num_kept);
      give_out(0);
      if (num_tried_ > most_tried_) break;
      const bool are_enough = limit_us_ == rules_.most_us || kept_us() <= limit_us_;
      ways = kept();
      if (are_enough) break;
    }
    return ways;
  }

 private:
  /// Of a step whose work is dealt out evenly.
  static constexpr std::array kLimits = {1.05, 1.2, 1.5, 2.0, kUnlimited};

  std::vector<StageWay> kept() {
    std::vector<StageWay> ways = with_messages_.sorted();
    for (StageWay& way : without_.sorted()) {
      if (std::ranges::count(ways, way) == 0) ways.push_back(std::move(way));
    }
    return ways;
  }

  double kept_us() const { return std::max(with_messages_.most_us(), without_.most_us()); }

  double most_us() const { return std::min(limit_us_, kept_us()); }

  void give_out(std::size_t b) {
    if (b == blocks_.size()) return keep();
    for (int s = first_[b]; s < num_stages_; ++s) {
      if (++num_tried_ > most_tried_) return;
      const std::size_t num_raised = raised_.size();
      place(b, s);
      if (may_be_kept(bounds_[b + 1])) give_out(b + 1);
      take_back(b, num_raised);
    }
  }

  void place(std::size_t b, int stage) {
    const BlockGraph::Block& block = blocks_[b];
    Bounds& now = bounds_[b + 1];
    now = bounds_[b];
    way_[b] = stage;
    ++num_blocks_[stage];
    now.work_us[stage] += block.work_us * slowness_[stage];
    now.once_us[stage] += (splits_ ? block.lead_us : block.work_us) * slowness_[stage];
    now.rest_us[first_[b]] -= block.work_us;
    for (const int by : fed_by_[b]) ++feeds_[way_[by] * num_stages_ + stage];
    if (stage > first_[b]) raise_first(block, stage, now);
    for (int s = stage; s < num_stages_; ++s) {
      for (int r = 0; r < s; ++r) {
        if (feeds_[r * num_stages_ + s] == 0) continue;
        now.lead_us[s] = std::max(now.lead_us[s], now.lead_us[r] + now.once_us[r]);
      }
    }
  }

  /// Blocks after this one can be in no stage before its own.
  void raise_first(const BlockGraph::Block& block, int stage, Bounds& now) {
    for (const int after : block.after) {
      if (first_[after] >= stage) continue;
      raised_.emplace_back(after, first_[after]);
      now.rest_us[first_[after]] -= blocks_[after].work_us;
      now.rest_us[stage] += blocks_[after].work_us;
      first_[after] = stage;
      raise_first(blocks_[after], stage, now);
    }
  }

  void take_back(std::size_t b, std::size_t num_raised) {
    while (raised_.size() > num_raised) {
      first_[raised_.back().first] = raised_.back().second;
      raised_.pop_back();
    }
    for (const int by : fed_by_[b]) --feeds_[way_[by] * num_stages_ + way_[b]];
    --num_blocks_[way_[b]];
  }

  /// Of work alone, for the stage that takes longest.
  double least_us(const Bounds& now) const {
    double most_us = 0;
    for (int s = 0; s < num_stages_; ++s) {
      most_us = std::max(most_us, now.lead_us[s] + num_microbatches_ * now.work_us[s]);
    }
    return most_us * kRoundedDown;
  }

  /// Whether no stage takes too long, and those that blocks without one can be in have room for these.
  bool may_be_kept(const Bounds& now) const {
    const double most_us = this->most_us();
    if (least_us(now) >= most_us) return false;
    double room_us = 0, rest_us = 0;
    for (int s = num_stages_ - 1; s >= 0; --s) {
      const double work_us = (most_us / kRoundedDown - now.lead_us[s]) / num_microbatches_;
      room_us += std::max(0.0, work_us - now.work_us[s]) / slowness_[s];
      rest_us += now.rest_us[s];
      if (rest_us > room_us + rounding_us_) return false;
    }
    return true;
  }

  /// The way, where it is among the best.
  void keep() {
    if (std::ranges::count(num_blocks_, 0) > 0) return;
    const double least_us = this->least_us(bounds_.back());
    if (least_us >= most_us()) return;
    without_.offer(least_us, way_);
    if (least_us < with_messages_.most_us()) with_messages_.offer(step_us(), way_);
  }

  /// With messages.
  double step_us() {
    times_.clear();
    is_done_.assign(is_done_.size(), false);
    for (int s = 0; s < num_stages_; ++s) {
      positions_.clear();
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        if (way_[b] != s) continue;
        for (int p = blocks_[b].begin; p < blocks_[b].end; ++p) {
          positions_.push_back(p);
          is_done_[p] = true;
        }
      }
      times_.push_back(costs_.time(positions_, is_done_, s));
    }
    lead_us_.assign(num_stages_, 0);
    double most_us = 0;
    for (int s = 0; s < num_stages_; ++s) {
      for (int r = 0; r < s; ++r) {
        if (feeds_[r * num_stages_ + s] == 0) continue;
        lead_us_[s] =
            std::max(lead_us_[s], lead_us_[r] + bounds_.back().once_us[r] + times_[r].gradients_us);
      }
      lead_us_[s] += times_[s].values_us;
      most_us = std::max(most_us, lead_us_[s] + num_microbatches_ * times_[s].slowest_us());
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
  double limit_us_ = kUnlimited;
  double rounding_us_ = 0;  ///< Of sums of all work.
  StageWay way_;
  StageWay first_;  ///< By block: the first stage that it can be in.
  std::vector<std::pair<int, int>>
      raised_;  ///< Blocks whose first stage is later now, and which it was.
  std::vector<std::vector<int>> fed_by_;  ///< By block: those that feed it.
  std::vector<int> num_blocks_;           ///< By stage.
  std::vector<int> feeds_;                ///< By stage, stage: how many blocks feed such.
  std::vector<Bounds> bounds_;            ///< By number of blocks that have a stage.
  std::vector<int> positions_;
  std::vector<bool> is_done_;  ///< By position.
  std::vector<SetTime> times_;
  std::vector<double> lead_us_;
  std::int64_t num_tried_ = 0, most_tried_ = 0;
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
