#include "trireme/plan/partition/search.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>

#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/partition/chain.h"
#include "trireme/plan/partition/range_cost.h"
#include "trireme/plan/schedule/in_flight.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr int kMaxTightenings = 6;
constexpr int kMaxMoves = 64;
constexpr std::array kDistances = {1, 2, 8, 32};
/// Parts of the allowed slowdown that the slowest stage may take, tried in turn.
constexpr std::array kSlowdownParts = {1.0, 0.75, 0.5, 0.25, 0.0};

RangeRules range_rules(const Problem& problem, const Setting& setting) {
  RangeRules rules;
  rules.link_kind = problem.link_kind();
  rules.microbatch = problem.options.batch.microbatch;
  rules.num_microbatches = problem.num_microbatches();
  rules.lanes = problem.options.batch.lanes / problem.options.replicas;
  rules.in_flight = schedule::most_in_flight(schedule::make_schedule(
      setting.schedule, problem.num_stages, static_cast<int>(problem.num_microbatches())));
  rules.memory = problem.options.forecast.memory;
  rules.constant_bytes = simulate::held_batch_bytes(setting.planned, rules.microbatch) +
                         simulate::fixed_bytes(setting.planned);
  return rules;
}

}  // namespace

std::vector<int> cuts_of(const layout::Plan& plan) {
  std::vector<int> cuts;
  for (std::size_t s = 1; s < plan.stages.size(); ++s) cuts.push_back(plan.stages[s].begin);
  return cuts;
}

Search::Search(const Problem& problem, const Setting& setting)
    : problem_(problem), setting_(setting), allowed_(graph::allowed_cuts(setting.planned)) {
  for (int c = 1; c + 1 < static_cast<int>(allowed_.size()); ++c) {
    if (allowed_[c]) places_.push_back(c);
  }
  work_before_us_ = {0};
  for (const profile::NodeTime& time : profile::node_times(problem.profile, setting.planned)) {
    work_before_us_.push_back(work_before_us_.back() + time.forward_us + time.backward_us());
  }
}

std::optional<Candidate> Search::find(const Goal& goal) const {
  std::optional<Candidate> found = goal.objective == Objective::kSpeed ? fastest() : smallest(goal);
  if (!found) return std::nullopt;
  return improve(*std::move(found), goal);
}

std::optional<Candidate> Search::fastest() const {
  RangeCost ranges(setting_.planned, problem_.profile, range_rules(problem_, setting_),
                   RangeGoal::kTime);
  ChainRules rules{allowed_, problem_.options.cuts, {}};
  for (int s = 0; s < problem_.num_stages; ++s) {
    rules.limits.push_back(static_cast<double>(problem_.memory_limit(s)));
  }
  std::optional<Candidate> best;
  const Goal goal;
  for (int round = 0; round < kMaxTightenings; ++round) {
    const std::optional<ChainCuts> chain = cut_chain(ranges, rules);
    if (!chain) break;
    Candidate candidate = evaluate(problem_, setting_, chain->cuts);
    bool fits = true;
    for (int s = 0; s < problem_.num_stages; ++s) {
      const std::int64_t excess = excess_bytes(problem_, candidate, s);
      if (excess <= 0) continue;
      fits = false;
      rules.limits[s] -= static_cast<double>(excess);
    }
    if (!best || score(problem_, candidate, goal) < score(problem_, *best, goal)) {
      best = std::move(candidate);
    }
    if (fits) return best;
  }
  std::optional<Candidate> small = least_memory(kNoLimit);
  if (!best || (small && score(problem_, *small, goal) < score(problem_, *best, goal))) {
    best = std::move(small);
  }
  return best;
}

std::optional<Candidate> Search::least_memory(double max_stage_us) const {
  RangeCost ranges(setting_.planned, problem_.profile, range_rules(problem_, setting_),
                   RangeGoal::kMemory);
  const std::vector<double> limits(static_cast<std::size_t>(problem_.num_stages), max_stage_us);
  const std::optional<ChainCuts> chain =
      cut_chain(ranges, {allowed_, problem_.options.cuts, limits});
  if (!chain) return std::nullopt;
  return evaluate(problem_, setting_, chain->cuts);
}

std::optional<Candidate> Search::smallest(const Goal& goal) const {
  RangeCost ranges(setting_.planned, problem_.profile, range_rules(problem_, setting_),
                   RangeGoal::kTime);
  const std::vector<double> limits(static_cast<std::size_t>(problem_.num_stages), kNoLimit);
  const std::optional<ChainCuts> balanced =
      cut_chain(ranges, {allowed_, problem_.options.cuts, limits});
  if (!balanced) return std::nullopt;
  Candidate best = evaluate(problem_, setting_, balanced->cuts);
  for (const double part : kSlowdownParts) {
    const double slowdown = 1 + part * (problem_.options.max_slowdown - 1);
    std::optional<Candidate> candidate = least_memory(balanced->cost * slowdown);
    if (candidate && score(problem_, *candidate, goal) < score(problem_, best, goal)) {
      best = *std::move(candidate);
    }
  }
  return best;
}

Candidate Search::improve(Candidate best, const Goal& goal) const {
  const std::vector<Move> moves = this->moves();
  Score best_score = score(problem_, best, goal);
  std::set<Cuts> tried;  // None of them was better than some worse best.
  int num_made = 0;
  std::size_t at = 0, num_failed = 0;
  while (num_failed < moves.size() && num_made < kMaxMoves) {
    const std::optional<Cuts> cuts = moved(cuts_of(best.plan), moves[at]);
    if (cuts && may_improve(*cuts, best_score, goal) && tried.insert(*cuts).second) {
      Candidate candidate = evaluate(problem_, setting_, *cuts);
      const Score now = score(problem_, candidate, goal);
      if (now < best_score) {
        best = std::move(candidate);
        best_score = now;
        ++num_made;
        num_failed = 0;
        continue;  // The same move may pay again.
      }
    }
    ++num_failed;
    at = (at + 1) % moves.size();
  }
  return best;
}

bool Search::may_improve(const Cuts& cuts, const Score& best, const Goal& goal) const {
  // Most moves are too far: their stages alone take longer than the step may.
  const bool fits = best.excess_bytes <= 0 && best.excess_us <= 0;
  const double longest_us = goal.objective == Objective::kSpeed ? best.primary : goal.max_step_us;
  return !fits || step_bound_us(cuts) <= longest_us;
}

/// What a step with these cuts takes at least: simulate::plan_bound_us by nodes alone.
double Search::step_bound_us(const Cuts& cuts) const {
  const auto m = static_cast<double>(problem_.num_microbatches());
  double bound = 0;
  int begin = 0;
  for (std::size_t s = 0; s <= cuts.size(); ++s) {
    const int end = s == cuts.size() ? static_cast<int>(setting_.planned.nodes.size()) : cuts[s];
    const double before = work_before_us_[begin];
    bound = std::max(bound, before + m * (work_before_us_[end] - before));
    begin = end;
  }
  return bound * (1 - 1e-9);  // Sums in another order than the forecast's.
}

std::vector<Search::Move> Search::moves() const {
  std::vector<Move> moves;
  const auto num_cuts = static_cast<std::size_t>(problem_.num_stages) - 1;
  for (std::size_t c = 0; c < num_cuts; ++c) {
    for (const int distance : kDistances) {
      for (const int signed_distance : {-distance, distance}) {
        moves.push_back({c, c, signed_distance});
        if (c + 1 < num_cuts) moves.push_back({c, c + 1, signed_distance});
      }
    }
  }
  return moves;
}

std::optional<Search::Cuts> Search::moved(const Cuts& cuts, const Move& move) const {
  Cuts moved = cuts;
  for (std::size_t c = move.first; c <= move.last; ++c) {
    const auto at = std::lower_bound(places_.begin(), places_.end(), cuts[c]) - places_.begin();
    const std::ptrdiff_t place = at + move.distance;
    if (place < 0 || place >= static_cast<std::ptrdiff_t>(places_.size())) return std::nullopt;
    moved[c] = places_[place];
  }
  const bool ascends =
      std::adjacent_find(moved.begin(), moved.end(), std::greater_equal<>()) == moved.end();
  if (!ascends || !keeps_required(moved)) return std::nullopt;
  return moved;
}

bool Search::keeps_required(const Cuts& cuts) const {
  return std::includes(cuts.begin(), cuts.end(), problem_.options.cuts.begin(),
                       problem_.options.cuts.end());
}

}  // namespace trireme::partition
