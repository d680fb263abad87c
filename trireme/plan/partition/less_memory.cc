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
#include "trireme/plan/partition/cut_rules.h"
#include "trireme/plan/partition/estimate.h"
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

  /// most_us   steps as long as this are of no use.
  LeanCuts(const Problem& problem, const graph::Graph& planned, const Candidate& start, Again again,
           double most_us)
      : problem_(problem),
        most_us_(most_us),
        in_regions_(again == Again::kRegion),
        setting_{start.plan.schedule.name, start.plan.copied_nodes, planned, start.plan.node_order},
        estimator_(problem, setting_),
        best_(start),
        left_{total_excess(problem, start), start.forecast.simulation.step_us},
        places_(planned),
        rules_(planned, problem.options.cuts, problem.options.stage_of, problem.num_stages) {
    const auto size = std::ssize(planned.nodes) +
                      problem.num_microbatches() * static_cast<std::int64_t>(problem.num_stages);
    const double steps = kMostSteps * problem.options.effort / static_cast<double>(size);
    num_tries_ = std::clamp(static_cast<std::int64_t>(steps), kLeastTries, kMostTries);
    const bool has_plan = left_.first == 0 || most_us_ < kUnlimited;
    if (has_plan && !are_few()) num_tries_ /= 4;
  }

  Candidate find() {
    if (left_.first == 0) keep_more(best_);
    if (are_few()) {
      try_all();
    } else {
      climb();
    }
    return std::move(best_);
  }

 private:
  static constexpr double kMostSteps = 3e5;
  static constexpr std::int64_t kLeastTries = 16, kMostTries = 1200;
  static constexpr double kFewPartitions = 1000;
  static constexpr int kFewStages = 4;  ///< Of which all sets are tried.

  /// Whether all cuts are tried.
  bool are_few() const { return places_.num_partitions(problem_.num_stages) <= kFewPartitions; }

  /// Those first that would be fastest if all were kept.
  void try_all() {
    std::vector<std::pair<double, Cuts>> all;
    places_.for_each_partition(problem_.num_stages, [&](const Cuts& cuts) {
      all.emplace_back(estimator_.is_lean() ? estimator_.step_us(cuts) : 0, cuts);
    });
    std::ranges::sort(all);
    for (const auto& [step_us, cuts] : all) try_cuts(cuts);
  }

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
    if (num_tries_ <= 0 || !rules_.keep(cuts)) return false;
    // Where all is kept the step is shortest.
    const double most_us = left_.first == 0 ? std::min(most_us_, left_.second) : most_us_;
    if (most_us < kUnlimited && estimator_.is_lean() && estimator_.step_us(cuts) >= most_us) {
      return false;
    }
    const PartitionOptions& options = problem_.options;
    const bool is_simple =
        options.recompute == Recompute::kAuto && options.offload == Offload::kNone;
    if (is_simple && !in_regions_ && problem_.num_stages <= kFewStages) return try_sets(cuts);
    --num_tries_;
    const Candidate least =
        forecast_of(problem_, setting_.planned, lean(plan_of(problem_, setting_, cuts)));
    bool is_taken = take(least);
    layout::Plan other = least.plan;
    if (options.recompute == Recompute::kAuto) {
      for (int s = 0; s < problem_.num_stages; ++s) {
        // What it runs again may be more than what it would keep.
        if (excess_bytes(problem_, least, s) <= 0) continue;
        other.stages[s].recompute = false;
        other.stages[s].regions.clear();
        other.stages[s].offload = options.offload != Offload::kNone;
      }
    }
    if (other != least.plan) is_taken = try_plan(std::move(other)) || is_taken;
    return (total_excess(problem_, least) == 0 && keep_more(least)) || is_taken;
  }

  /// Each set of stages that recompute. What a rank with one stage holds depends on that stage's way alone: two forecasts
  /// say of all sets what they leave to be saved.
  bool try_sets(const Cuts& cuts) {
    const layout::Plan plan = plan_of(problem_, setting_, cuts);
    unsigned all = 0;
    for (int s = 0; s < problem_.num_stages; ++s) all |= can_recompute(plan, s) ? 1U << s : 0;
    const Candidate none_again = with_set(plan, 0), all_again = with_set(plan, all);
    bool is_taken = take(none_again);
    is_taken = take(all_again) || is_taken;
    for (unsigned set = 1; set < all; ++set) {
      if ((set & ~all) != 0) continue;
      std::int64_t excess = 0;
      for (int s = 0; s < problem_.num_stages; ++s) {
        const Candidate& own = (set >> s & 1U) != 0 ? all_again : none_again;
        excess += std::max<std::int64_t>(0, excess_bytes(problem_, own, s));
      }
      if (problem_.options.stages_per_rank == 1 && excess > left_.first) continue;
      is_taken = take(with_set(plan, set)) || is_taken;
    }
    return is_taken;
  }

  /// The plan with these stages, as bits, that recompute.
  Candidate with_set(layout::Plan plan, unsigned set) {
    --num_tries_;
    for (int s = 0; s < problem_.num_stages; ++s) plan.stages[s].recompute = (set >> s & 1U) != 0;
    return forecast_of(problem_, setting_.planned, std::move(plan));
  }

  bool can_recompute(const layout::Plan& plan, int stage) const {
    return layout::why_not_recomputed(setting_.planned, plan, stage).empty();
  }

  /// Likewise of a plan, where it fits also of what it gives up.
  bool try_plan(layout::Plan plan) {
    --num_tries_;
    Candidate candidate = forecast_of(problem_, setting_.planned, std::move(plan));
    const bool is_taken = take(candidate);
    return (total_excess(problem_, candidate) == 0 && keep_more(std::move(candidate))) || is_taken;
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
                        can_recompute(plan, s);
      stage.offload = options.offload == Offload::kAll ||
                      (options.offload == Offload::kAuto && !stage.recompute);
      if (stage.recompute && in_regions_) layout::set_regions(setting_.planned, plan, s);
    }
    return plan;
  }

  /// What the options leave open is given up again, stage by stage, that which gains most first, as long as it fits
  /// without; whether that is better than all before.
  bool keep_more(Candidate from) {
    for (;;) {
      std::optional<Candidate> next;
      if (num_tries_ <= 0) return take(std::move(from));
      double step_us = from.forecast.simulation.step_us;
      for (int s = 0; s < problem_.num_stages; ++s) {
        layout::Plan plan = keeping(from.plan, s);
        if (plan == from.plan) continue;
        --num_tries_;
        Candidate other = forecast_of(problem_, setting_.planned, std::move(plan));
        const bool fits = total_excess(problem_, other) == 0;
        if (!fits || other.forecast.simulation.step_us >= step_us) continue;
        step_us = other.forecast.simulation.step_us;
        next = std::move(other);
      }
      if (!next) return take(std::move(from));
      from = *std::move(next);
    }
  }

  /// With a stage that keeps all, as far as the options leave that open.
  layout::Plan keeping(layout::Plan plan, int stage) const {
    if (problem_.options.recompute == Recompute::kAuto) {
      plan.stages[stage].recompute = false;
      plan.stages[stage].regions.clear();
    }
    if (problem_.options.offload == Offload::kAuto) plan.stages[stage].offload = false;
    return plan;
  }

  const Problem& problem_;
  double most_us_;
  bool in_regions_;  ///< Stages recompute so.
  Setting setting_;
  Estimator estimator_;
  Candidate best_;
  std::pair<std::int64_t, double> left_;  ///< Of the best: excess, step.
  CutPlaces places_;
  CutRules rules_;
  std::int64_t num_tries_ = 0;
};

}  // namespace

bool is_tight(const Problem& problem, const Candidate& candidate) {
  constexpr double kTight = 0.5;
  for (int s = 0; s < problem.num_stages; ++s) {
    const auto limit = static_cast<double>(problem.memory_limit(s));
    if (static_cast<double>(excess_bytes(problem, candidate, s)) > (kTight - 1) * limit)
      return true;
  }
  return false;
}

Candidate with_less_memory(const Problem& problem, Candidate candidate, double most_us) {
  if (problem.options.recompute == Recompute::kNone && problem.options.offload == Offload::kNone) {
    return candidate;
  }
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  const bool is_all = recomputes_all(problem.options) || problem.options.offload == Offload::kAll;
  if (!is_all && !is_tight(problem, candidate)) return candidate;
  if (auto plan = with_all(problem, planned, candidate.plan)) {
    candidate = forecast_of(problem, planned, *std::move(plan));
  }
  if (problem.options.recompute == Recompute::kRegions) {
    candidate = with_best_regions(problem, planned, std::move(candidate));
  }
  candidate = as_long_as_it_helps(problem, planned, std::move(candidate), with_one_more);
  candidate = in_more_regions(problem, planned, std::move(candidate));
  if (problem.num_stages == 1 || problem.options.balance != Balance::kSearch) return candidate;
  bool is_first = true;
  for (const Again again : ways_to_run_again(problem.options.recompute)) {
    // Cuts were searched as if all were kept: others may be better for what is not.
    if (!std::exchange(is_first, false) && total_excess(problem, candidate) == 0) break;
    candidate = LeanCuts(problem, planned, candidate, again, most_us).find();
    candidate = in_more_regions(problem, planned, std::move(candidate));
  }
  return candidate;
}

}  // namespace trireme::partition
