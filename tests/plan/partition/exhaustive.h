#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition::testing {

/// All cuts, schedules and sets of stages that recompute, in the simulator: the best there is.
///
/// A plan is forecast once, whatever is asked about it: limits of memory, goals and whether stages recompute are read from
/// the problem's options each time. Cuts come in the order of what a step of theirs takes at least; those for which that is
/// longer than a step that fits are left out.
class Exhaustive {
 public:
  /// problem   whatever it refers to must outlive this.
  explicit Exhaustive(const Problem& problem) : problem_(problem) {
    for (const std::string& schedule : schedule::schedule_names(1)) {
      settings_.push_back({schedule, {}, problem_.recorded});
      splits_.push_back(schedule::splits_backwards(make_schedule(problem_, settings_.back())));
    }
    const std::vector<bool> allowed = graph::allowed_cuts(problem_.recorded);
    for (int c = 1; c + 1 < static_cast<int>(allowed.size()); ++c) {
      if (allowed[c]) places_.push_back(c);
    }
    times_ = profile::node_times(problem_.profile, problem_.recorded);
    read_uses();
    Cuts cuts;
    add_partitions(cuts, 0);
    std::ranges::sort(partitions_, {}, &Partition::least_us);
  }

  Score best(const Goal& goal) {
    goal_ = goal;
    best_ = {std::numeric_limits<std::int64_t>::max(), 0, 0, 0};
    best_fit_ = kUnlimited;
    for (std::size_t p = 0; p < partitions_.size(); ++p) {
      const bool is_speed = goal.objective == Objective::kSpeed;
      if (is_speed && partitions_[p].least_us > best_fit_) break;
      for (std::size_t s = 0; s < settings_.size(); ++s) {
        if (is_speed && !splits_[s] && partitions_[p].least_unsplit_us > best_fit_) continue;
        try_cuts(s, p);
      }
    }
    return best_;
  }

 private:
  using Cuts = std::vector<int>;

  struct Partition {
    Cuts cuts;
    double least_us = 0;          ///< What a step takes at least.
    double least_unsplit_us = 0;  ///< Likewise where inputs and weights have one backward.
  };

  /// What is known of a plan, whatever the limits.
  struct Known {
    double step_us = 0;
    std::vector<std::int64_t> peaks;  ///< By stage, of its fullest replica.
  };

  void add_partitions(Cuts& cuts, std::size_t place) {
    if (static_cast<int>(cuts.size()) + 1 == problem_.num_stages) {
      partitions_.push_back({cuts, least_us(cuts, 0), least_us(cuts, 1)});
      return;
    }
    for (; place < places_.size(); ++place) {
      cuts.push_back(places_[place]);
      add_partitions(cuts, place + 1);
      cuts.pop_back();
    }
  }

  /// Values with a gradient, which a stage waits for before its forward, by the nodes that make and take them.
  void read_uses() {
    const graph::Graph& graph = problem_.recorded;
    std::map<graph::ValueId, int> makers;
    for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
      for (const graph::ValueId id : graph::input_values(graph.nodes[p])) {
        const auto maker = makers.find(id);
        if (maker != makers.end()) uses_.emplace_back(maker->second, p);
      }
      for (const graph::ValueId id : graph.nodes[p].outputs) {
        if (id >= 0 && graph.values[id].requires_grad) makers.emplace(id, p);
      }
    }
  }

  /// A stage does all microbatches, after one has come through the stages that it waits for.
  ///
  /// backwards   part of these stages' backwards that stands between its last backward and the step's end.
  double least_us(const Cuts& cuts, double backwards) const {
    constexpr double kRoundedDown = 1 - 1e-9;  // Sums in another order.
    const auto stage_of = [&](int position) {
      return std::ranges::upper_bound(cuts, position) - cuts.begin();
    };
    std::vector<double> work(problem_.num_stages), leads(problem_.num_stages);
    std::vector<double> before(problem_.num_stages);
    for (int p = 0; p < static_cast<int>(times_.size()); ++p) {
      const auto s = stage_of(p);
      const double speed = problem_.most_speed(static_cast<int>(s));
      work[s] += (times_[p].forward_us + times_[p].backward_us()) / speed;
      leads[s] += (times_[p].forward_us + backwards * times_[p].backward_us()) / speed;
    }
    const auto m = static_cast<double>(problem_.num_microbatches());
    double most = 0;
    for (int s = 0; s < problem_.num_stages; ++s) {
      for (const auto& [maker, taker] : uses_) {
        const auto from = stage_of(maker);
        if (stage_of(taker) != s || from == s) continue;
        before[s] = std::max(before[s], before[from] + leads[from]);
      }
      most = std::max(most, before[s] + m * work[s]);
    }
    return most * kRoundedDown;
  }

  void try_cuts(std::size_t setting, std::size_t partition) {
    const Recompute recompute = problem_.options.recompute;
    if (recompute == Recompute::kAll) {
      try_stages(setting, partition, (1U << problem_.num_stages) - 1);
      return;
    }
    const Score keeps = try_stages(setting, partition, 0);
    // Running a forward again never makes a step shorter.
    const bool is_settled = keeps.excess_bytes <= 0 || keeps.primary > best_fit_;
    if (recompute == Recompute::kNone || is_settled) return;
    try_sets(setting, partition);
  }

  /// Sets of stages that recompute, but for those that do not fit: what a stage holds depends on its own way alone. Where a
  /// set fits, more stages gain nothing.
  void try_sets(std::size_t setting, std::size_t partition) {
    const unsigned all = (1U << problem_.num_stages) - 1;
    const std::vector<std::int64_t> keeping = known(setting, partition, 0).peaks;
    const std::vector<std::int64_t> running_again = known(setting, partition, all).peaks;
    std::vector<unsigned> sets, fitting;
    for (unsigned set = 1; set <= all; ++set) sets.push_back(set);
    std::ranges::stable_sort(sets, {}, [](unsigned set) { return std::popcount(set); });
    for (const unsigned set : sets) {
      if (std::ranges::any_of(fitting, [&](unsigned less) { return (set & less) == less; }))
        continue;
      std::vector<std::int64_t> peaks = keeping;
      bool fits = true;
      for (int s = 0; s < problem_.num_stages; ++s) {
        if ((set >> s & 1U) != 0) peaks[s] = running_again[s];
        fits = fits && peaks[s] <= problem_.memory_limit(s);
      }
      if (!fits) continue;
      EXPECT_EQ(known(setting, partition, set).peaks, peaks);
      try_stages(setting, partition, set);
      fitting.push_back(set);
    }
  }

  /// With the stages that recompute as bits, of those that can.
  Score try_stages(std::size_t setting, std::size_t partition, unsigned stages) {
    const Known& known = this->known(setting, partition, stages);
    Score now{0, goal_.excess_us(known.step_us), known.step_us,
              static_cast<double>(std::ranges::max(known.peaks))};
    for (int s = 0; s < problem_.num_stages; ++s) {
      now.excess_bytes = std::max(now.excess_bytes, known.peaks[s] - problem_.memory_limit(s));
    }
    if (goal_.objective == Objective::kMemory) std::swap(now.primary, now.secondary);
    best_ = std::min(best_, now);
    if (now.excess_bytes <= 0) best_fit_ = std::min(best_fit_, now.primary);
    return now;
  }

  const Known& known(std::size_t setting, std::size_t partition, unsigned stages) {
    const auto [entry, is_new] = known_.try_emplace({setting, partition, stages});
    if (is_new) entry->second = forecast(settings_[setting], partitions_[partition].cuts, stages);
    return entry->second;
  }

  Known forecast(const Setting& setting, const Cuts& cuts, unsigned stages) const {
    layout::Plan plan = plan_of(problem_, setting, cuts);
    for (int s = 0; s < problem_.num_stages; ++s) {
      plan.stages[s].recompute =
          (stages >> s & 1U) != 0 && layout::why_not_recomputed(problem_.recorded, plan, s).empty();
    }
    const Candidate candidate = forecast_of(problem_, problem_.recorded, std::move(plan));
    Known known{candidate.forecast.simulation.step_us, {}};
    for (int s = 0; s < problem_.num_stages; ++s) {
      std::int64_t most = 0;
      for (int r = 0; r < problem_.options.replicas; ++r) {
        most = std::max(most, candidate.forecast.memory[problem_.rank(s, r)].total());
      }
      known.peaks.push_back(most);
    }
    return known;
  }

  const Problem problem_;
  Goal goal_;
  std::vector<Setting> settings_;  ///< One for each schedule.
  std::vector<int> places_;        ///< Of cuts.
  std::vector<bool> splits_;       ///< By setting, backwards.
  std::vector<profile::NodeTime> times_;
  std::vector<std::pair<int, int>> uses_;
  std::vector<Partition> partitions_;  ///< By what they take at least.
  /// By setting, partition, stages that recompute.
  std::map<std::tuple<std::size_t, std::size_t, unsigned>, Known> known_;
  Score best_;
  double best_fit_ = kUnlimited;  ///< Primary.
};

inline Score exhaustive(const Problem& problem, const Goal& goal) {
  return Exhaustive(problem).best(goal);
}

}  // namespace trireme::partition::testing
