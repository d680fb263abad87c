#include "trireme/plan/partition/less_memory.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/cut_places.h"
#include "trireme/plan/partition/more_regions.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

/// A stage with one more means to hold less.
enum class Means : std::uint8_t { kRecompute, kOffload };

/// Whether `stage` can still have it, and the options leave it to the plan.
bool is_open(const Problem& problem, const graph::Graph& planned, const layout::Plan& plan,
             int stage, Means means) {
  const layout::Stage& own = plan.stages[stage];
  if (own.recompute || own.offload) return false;  // What is kept is little then.
  if (means == Means::kOffload) return problem.options.offload == Offload::kAuto;
  return problem.options.recompute == Recompute::kAuto &&
         layout::why_not_recomputed(planned, plan, stage).empty();
}

bool recomputes_all(const PartitionOptions& options) {
  return options.recompute == Recompute::kAll || options.recompute == Recompute::kRegions;
}

/// The stages that must, whatever the memory; nothing where none do.
std::optional<layout::Plan> with_all(const Problem& problem, const graph::Graph& planned,
                                     layout::Plan plan) {
  const bool recomputes = recomputes_all(problem.options);
  const bool offloads = problem.options.offload == Offload::kAll;
  if (!recomputes && !offloads) return std::nullopt;
  for (int s = 0; s < problem.num_stages; ++s) {
    layout::Stage& stage = plan.stages[s];
    stage.recompute = recomputes && layout::why_not_recomputed(planned, plan, s).empty();
    stage.offload = offloads;
  }
  return plan;
}

/// With one more stage that holds less, that which leaves least to be saved; nothing where none saves any.
std::optional<Candidate> with_one_more(const Problem& problem, const graph::Graph& planned,
                                       const Candidate& candidate) {
  std::optional<Candidate> best;
  std::pair least{total_excess(problem, candidate), kUnlimited};
  for (int s = 0; s < problem.num_stages; ++s) {
    if (excess_bytes(problem, candidate, s) <= 0) continue;
    for (const Means means : {Means::kRecompute, Means::kOffload}) {
      if (!is_open(problem, planned, candidate.plan, s, means)) continue;
      layout::Plan plan = candidate.plan;
      (means == Means::kRecompute ? plan.stages[s].recompute : plan.stages[s].offload) = true;
      Candidate other = forecast_of(problem, planned, std::move(plan));
      const std::pair left{total_excess(problem, other), other.forecast.simulation.step_us};
      if (left.first >= total_excess(problem, candidate) || left >= least) continue;
      least = left;
      best = std::move(other);
    }
  }
  return best;
}

using OneStep = std::optional<Candidate> (*)(const Problem&, const graph::Graph&, const Candidate&);

/// One step after another, until all fit.
Candidate as_long_as_it_helps(const Problem& problem, const graph::Graph& planned,
                              Candidate candidate, OneStep step) {
  while (total_excess(problem, candidate) > 0) {
    std::optional<Candidate> other = step(problem, planned, candidate);
    if (!other) break;
    candidate = *std::move(other);
  }
  return candidate;
}

/// What recomputing whole stages does not save, a region at a time may.
Candidate in_more_regions(const Problem& problem, const graph::Graph& planned,
                          Candidate candidate) {
  if (problem.options.recompute == Recompute::kNone) return candidate;
  return as_long_as_it_helps(problem, planned, std::move(candidate), with_more_regions);
}

/// What stages that hold little run again at a time.
enum class Again : std::uint8_t { kStage, kRegion };

/// What is tried, one after the other.
std::vector<Again> ways_to_run_again(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
      return {Again::kStage};  // Offload alone.
    case Recompute::kRegions:
      return {Again::kRegion};
    case Recompute::kAuto:
    case Recompute::kAll:
      return {Again::kStage, Again::kRegion};
  }
  return {};
}

/// Cuts for stages that hold as little as the options let them.
class LeanCuts {
 public:
  using Cuts = std::vector<int>;

  LeanCuts(const Problem& problem, const graph::Graph& planned, const Candidate& start, Again again)
      : problem_(problem),
        in_regions_(again == Again::kRegion),
        setting_{start.plan.schedule.name, start.plan.copied_nodes, planned},
        best_(start),
        left_{total_excess(problem, start), start.forecast.simulation.step_us},
        places_(planned) {
    const auto size = std::ssize(planned.nodes) +
                      problem.num_microbatches() * static_cast<std::int64_t>(problem.num_stages);
    num_tries_ = std::clamp(kMostSteps / size, kLeastTries, kMostTries);
  }

  Candidate find() {
    if (places_.num_partitions(problem_.num_stages) <= static_cast<double>(num_tries_)) {
      places_.for_each_partition(problem_.num_stages, [this](const Cuts& cuts) { try_cuts(cuts); });
    } else {
      climb();
    }
    if (left_.first == 0) keep_more();
    return std::move(best_);
  }

 private:
  static constexpr std::int64_t kMostSteps = 1'000'000, kLeastTries = 16, kMostTries = 500;

  /// Cuts, alone and with those after them, by ever smaller distances, as long as that leaves less to be saved.
  void climb() {
    Cuts cuts;
    for (std::size_t s = 1; s < best_.plan.stages.size(); ++s)
      cuts.push_back(best_.plan.stages[s].begin);
    try_cuts(cuts);
    for (std::ptrdiff_t distance = std::ssize(places_.all()) / 4; distance > 0; distance /= 2) {
      while (move_some(cuts, distance)) continue;
    }
  }

  bool move_some(Cuts& cuts, std::ptrdiff_t distance) {
    for (std::size_t first = 0; first < cuts.size(); ++first) {
      for (std::size_t last = first; last < cuts.size(); ++last) {
        for (const std::ptrdiff_t step : {-distance, distance}) {
          std::optional<Cuts> moved = places_.moved(cuts, {first, last, step});
          if (!moved || !try_cuts(*moved)) continue;
          cuts = *std::move(moved);
          return true;
        }
      }
    }
    return false;
  }

  /// Whether they are better than all before.
  bool try_cuts(const Cuts& cuts) {
    const Cuts& required = problem_.options.cuts;
    if (!std::ranges::includes(cuts, required) || num_tries_ == 0) return false;
    --num_tries_;
    const Candidate least =
        forecast_of(problem_, setting_.planned, lean(plan_of(problem_, setting_, cuts)));
    layout::Plan other = least.plan;
    if (problem_.options.recompute == Recompute::kAuto) {
      for (int s = 0; s < problem_.num_stages; ++s) {
        // What it runs again may be more than what it would keep.
        if (excess_bytes(problem_, least, s) <= 0) continue;
        other.stages[s].recompute = false;
        other.stages[s].regions.clear();
        other.stages[s].offload = problem_.options.offload != Offload::kNone;
      }
    }
    const bool is_taken = take(least);
    return (other != least.plan && take_plan(std::move(other))) || is_taken;
  }

  bool take_plan(layout::Plan plan) {
    return take(forecast_of(problem_, setting_.planned, std::move(plan)));
  }

  bool take(Candidate other) {
    const std::pair left{total_excess(problem_, other), other.forecast.simulation.step_us};
    if (left >= left_) return false;
    left_ = left;
    best_ = std::move(other);
    return true;
  }

  /// A stage with one microbatch under way keeps no less by recomputing all at once.
  layout::Plan lean(layout::Plan plan) const {
    const PartitionOptions& options = problem_.options;
    const std::vector<int> in_flight = schedule::most_in_flight(schedule::schedule_of(plan));
    for (int s = 0; s < problem_.num_stages; ++s) {
      layout::Stage& stage = plan.stages[s];
      stage.recompute = options.recompute != Recompute::kNone &&
                        (recomputes_all(options) || in_regions_ || in_flight[s] > 1) &&
                        layout::why_not_recomputed(setting_.planned, plan, s).empty();
      stage.offload = options.offload == Offload::kAll ||
                      (options.offload == Offload::kAuto && !stage.recompute);
      if (stage.recompute && in_regions_) layout::set_regions(setting_.planned, plan, s);
    }
    return plan;
  }

  /// What the options leave open is given up again where it fits without, and is faster.
  void keep_more() {
    for (int s = 0; s < problem_.num_stages; ++s) {
      layout::Plan plan = best_.plan;
      if (problem_.options.recompute == Recompute::kAuto) {
        plan.stages[s].recompute = false;
        plan.stages[s].regions.clear();
      }
      if (problem_.options.offload == Offload::kAuto) plan.stages[s].offload = false;
      if (plan != best_.plan) take_plan(std::move(plan));
    }
  }

  const Problem& problem_;
  bool in_regions_;  ///< Stages recompute so.
  Setting setting_;
  Candidate best_;
  std::pair<std::int64_t, double> left_;  ///< Of the best: excess, step.
  CutPlaces places_;
  std::int64_t num_tries_ = 0;
};

}  // namespace

Candidate with_less_memory(const Problem& problem, Candidate candidate) {
  if (problem.options.recompute == Recompute::kNone && problem.options.offload == Offload::kNone) {
    return candidate;
  }
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  if (auto plan = with_all(problem, planned, candidate.plan)) {
    candidate = forecast_of(problem, planned, *std::move(plan));
  }
  if (problem.options.recompute == Recompute::kRegions) {
    candidate = with_best_regions(problem, planned, std::move(candidate));
  }
  candidate = as_long_as_it_helps(problem, planned, std::move(candidate), with_one_more);
  candidate = in_more_regions(problem, planned, std::move(candidate));
  if (problem.num_stages == 1) return candidate;
  for (const Again again : ways_to_run_again(problem.options.recompute)) {
    if (total_excess(problem, candidate) == 0) break;
    candidate = LeanCuts(problem, planned, candidate, again).find();
    candidate = in_more_regions(problem, planned, std::move(candidate));
  }
  return candidate;
}

}  // namespace trireme::partition
