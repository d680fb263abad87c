#include "trireme/plan/partition/uneven_ranks.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/finished_plan.h"
#include "trireme/plan/partition/rank_divisions.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

constexpr int kMostRanks = 16;
constexpr std::size_t kLeastTried = 8;        ///< Divisions that are forecast.
constexpr std::size_t kMostTried = 40;        ///< Likewise, where forecasts are cheap.
constexpr std::size_t kMostImproved = 6;      ///< Of those.
constexpr int kFarthestMove = 8;              ///< Of a cut, in places where one may fall.
constexpr std::int64_t kActionsOfNode = 200;  ///< What a node costs in a forecast (judge.cc).
constexpr std::int64_t kActionsSpent =
    4'000'000;  ///< That all forecasts of a number of ranks play.

bool asks_for_even(const PartitionOptions& options) {
  const bool runs_again = options.recompute == Recompute::kAll ||
                          options.recompute == Recompute::kRegions ||
                          options.offload == Offload::kAll;
  return options.replicas != 0 || !options.may_replicate || options.stages_per_rank != 1 ||
         options.shard_state || options.placement != Placement::kSpread ||
         options.objective != Objective::kSpeed || options.balance != Balance::kSearch ||
         !options.cuts.empty() || !options.stage_of.empty() || runs_again;
}

/// Plans of one division.
class DivisionPlanner {
 public:
  DivisionPlanner(const Problem& whole, const Setting& setting, const WorkChain& chain,
                  const Division& division)
      : options_(whole.options), setting_(setting), chain_(chain), cuts_(division.cuts) {
    options_.replicas = *std::ranges::max_element(division.ranks);
    options_.stages = static_cast<int>(division.ranks.size());
    std::vector<int> placement;
    int rank = 0;
    for (const int num : division.ranks) {
      for (int i = 0; i < num; ++i, ++rank) {
        placement.insert(placement.end(), options_.replicas / num, rank);
      }
    }
    problem_.emplace(Problem{whole.recorded, whole.profile, whole.topology, options_,
                             whole.graph_sha256, options_.stages});
    problem_->placement = std::move(placement);
  }
  DivisionPlanner(const DivisionPlanner&) = delete;
  DivisionPlanner& operator=(const DivisionPlanner&) = delete;

  const Problem& problem() const { return *problem_; }
  const Score& score() const { return score_; }
  bool has_plan() const { return best_.has_value(); }
  const Candidate& best() const { return *best_; }

  /// Under each schedule that holds as few microbatches as may be active. Counts `left` down by forecasts, as `improve`.
  void begin(const std::vector<std::string>& schedules, std::int64_t& left) {
    std::ranges::copy_if(schedules, std::back_inserter(schedules_),
                         [this](const std::string& schedule) { return holds_as_few(schedule); });
    const std::vector<std::size_t> cuts = cuts_;
    for (const std::string& schedule : schedules_) try_cuts(schedule, cuts);
    left -= std::ssize(schedules_);
  }

  /// Moves cuts, one at a time, under every schedule, until no move makes steps shorter or `left` is 0.
  void improve(std::int64_t& left) {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (int width = kFarthestMove; width > 0; --width) {
        has_moved = improve_by(width, left) || has_moved;
      }
    }
  }

 private:
  bool holds_as_few(const std::string& schedule) const {
    if (options_.active_microbatches == 0) return true;
    try {
      make_schedule(*problem_, {schedule, {}, setting_.planned});
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  /// Whether one of the moves by so much was better.
  bool improve_by(int width, std::int64_t& left) {
    bool has_moved = false;
    for (std::size_t c = 0; c < cuts_.size(); ++c) {
      for (const int by : {-width, width}) {
        const std::optional<std::vector<std::size_t>> moved = with_moved(c, by);
        for (const std::string& schedule : schedules_) {
          if (!moved || left <= 0) break;
          --left;
          has_moved = try_cuts(schedule, *moved) || has_moved;
        }
      }
    }
    return has_moved;
  }

  std::optional<std::vector<std::size_t>> with_moved(std::size_t c, int by) const {
    const auto least = c == 0 ? 0 : static_cast<std::int64_t>(cuts_[c - 1]) + 1;
    const auto most =
        static_cast<std::int64_t>(c + 1 == cuts_.size() ? chain_.cuts.size() : cuts_[c + 1]) - 1;
    const std::int64_t to = static_cast<std::int64_t>(cuts_[c]) + by;
    if (to < least || to > most) return std::nullopt;
    std::vector<std::size_t> moved = cuts_;
    moved[c] = static_cast<std::size_t>(to);
    return moved;
  }

  /// Takes them where they are better.
  bool try_cuts(const std::string& schedule, const std::vector<std::size_t>& indices) {
    std::vector<int> cuts;
    for (const std::size_t index : indices) cuts.push_back(chain_.cuts[index]);
    Setting setting{schedule, setting_.copied_nodes, setting_.planned};
    Candidate candidate = evaluate(*problem_, setting, cuts);
    const Score now = partition::score(*problem_, candidate, {});
    if (best_ && !is_better(now, score_)) return false;
    best_ = std::move(candidate);
    score_ = now;
    cuts_ = indices;
    setting_.schedule = schedule;
    return true;
  }

  PartitionOptions options_;
  Setting setting_;
  const WorkChain& chain_;
  std::optional<Problem> problem_;
  std::vector<std::string> schedules_;
  std::vector<std::size_t> cuts_;
  std::optional<Candidate> best_;
  Score score_;
};

/// The best plan of a number of ranks.
class UnevenPlanner {
 public:
  UnevenPlanner(const Problem& whole, const Setting& setting)
      : whole_(whole), setting_(setting), chain_(setting.planned, whole.profile) {
    schedules_ = whole.options.schedule.empty() ? schedule::schedule_names(1)
                                                : std::vector{whole.options.schedule};
  }

  /// Where it is faster than `most_us`.
  std::optional<layout::Plan> plan(int num_ranks, double most_us) const {
    std::vector<std::unique_ptr<DivisionPlanner>> planners;
    std::int64_t left = num_forecasts(num_ranks);
    for (const Division& division :
         promising_divisions(whole_, chain_, num_ranks, num_tried(left))) {
      if (division.bound_us >= most_us) continue;
      auto& one = planners.emplace_back(
          std::make_unique<DivisionPlanner>(whole_, setting_, chain_, division));
      one->begin(schedules_, left);
      if (!one->has_plan()) planners.pop_back();
    }
    if (planners.empty()) return std::nullopt;
    const auto score_of = [](const auto& one) -> const Score& { return one->score(); };
    std::ranges::stable_sort(planners, is_better, score_of);
    planners.resize(std::min(planners.size(), kMostImproved));
    for (const auto& one : planners) one->improve(left);
    DivisionPlanner& best = **std::ranges::min_element(planners, is_better, score_of);
    const Candidate done = finished(best.problem(), best.best(), most_us);
    const Score score = partition::score(best.problem(), done, {});
    if (score.excess_bytes > 0 || score.primary >= most_us) return std::nullopt;
    return finished_plan(best.problem(), done);
  }

 private:
  std::int64_t num_forecasts(int num_ranks) const {
    const std::int64_t price =
        kActionsOfNode * static_cast<std::int64_t>(setting_.planned.nodes.size()) +
        3 * whole_.options.batch.num_microbatches() * std::min(num_ranks, kMostPositions);
    return static_cast<std::int64_t>(static_cast<double>(kActionsSpent) * whole_.options.effort) /
           price;
  }

  /// Divisions: as many as take half of those forecasts.
  std::size_t num_tried(std::int64_t num_forecasts) const {
    const auto each = 2 * static_cast<std::int64_t>(schedules_.size());
    return std::clamp(static_cast<std::size_t>(num_forecasts / each), kLeastTried, kMostTried);
  }

  const Problem& whole_;
  const Setting& setting_;
  WorkChain chain_;
  std::vector<std::string> schedules_;
};

}  // namespace

std::optional<layout::Plan> fastest_uneven(const graph::Graph& recorded,
                                           const profile::Profile& profile,
                                           const topology::Topology& topology,
                                           const PartitionOptions& options, double most_us) {
  if (asks_for_even(options)) return std::nullopt;
  PartitionOptions asked = options;
  asked.replicas = 1;
  const Problem whole{recorded, profile, topology, asked, graph::graph_sha256(recorded)};
  const std::vector<graph::NodeId> copied =
      options.copied_nodes.value_or(std::vector<graph::NodeId>());
  const graph::Graph planned =
      copied.empty() ? recorded : graph::copy_to_consumers(recorded, copied);
  const Setting setting{"", copied, planned};
  const UnevenPlanner planner(whole, setting);
  std::optional<layout::Plan> best;
  const int most = static_cast<int>(topology.ranks.size());
  for (int ranks = options.may_idle ? std::min(most, kMostRanks) : most; ranks > 2; --ranks) {
    if (ranks > kMostRanks) return std::nullopt;
    if (std::optional<layout::Plan> plan = planner.plan(ranks, most_us)) {
      most_us = plan->prediction->step_ms * 1000;
      best = std::move(plan);
    }
    if (!options.may_idle) break;
  }
  return best;
}

}  // namespace trireme::partition
