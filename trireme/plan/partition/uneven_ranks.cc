#include "trireme/plan/partition/uneven_ranks.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/finished_plan.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

// A rank that runs its stage for k replicas has k times the work. For given ranks by position the cuts under which the
// slowest rank has least are found by bisection: with a limit for each rank, every stage takes as many nodes as it may.
//
//     work    4 2 2 | 4      2 ranks, 1 rank: 4 each
//
// That is a bound for all plans of the division, and where its cuts begin. They then move as long as the forecast improves.

namespace trireme::partition {
namespace {

constexpr int kMostRanks = 16;
constexpr int kMostPositions = 8;
constexpr std::size_t kMostDivisions = 20'000;  ///< That are looked at, of a number of ranks.
constexpr std::size_t kLeastTried = 8;          ///< Of these, forecast.
constexpr std::size_t kMostTried = 40;          ///< Likewise, where forecasts are cheap.
constexpr std::size_t kMostImproved = 6;        ///< Of those.
constexpr int kFarthestMove = 8;                ///< Of a cut, in places where one may fall.
constexpr std::int64_t kActionsOfNode = 200;    ///< What a node costs in a forecast (judge.cc).
constexpr std::int64_t kActionsSpent =
    4'000'000;  ///< That all forecasts of a number of ranks play.
constexpr double kRoundedBy = 1e-9;

/// Adds all lists of so many of `parts` with this sum.
void add_divisions(const std::vector<int>& parts, int sum, int count, RanksByPosition& begun,
                   std::vector<RanksByPosition>& all) {
  if (all.size() >= kMostDivisions) return;
  if (count == 0) {
    if (sum == 0) all.push_back(begun);
    return;
  }
  for (const int part : parts) {
    if (part > sum - (count - 1)) break;
    begun.push_back(part);
    add_divisions(parts, sum - part, count - 1, begun, all);
    begun.pop_back();
  }
}

/// Of a division: whether each number of ranks divides the replicas, and has lanes that are one subtree.
bool keeps_bits(const PartitionOptions& options, const RanksByPosition& ranks) {
  const int replicas = *std::ranges::max_element(ranks);
  return options.batch.lanes % replicas == 0 && std::ranges::all_of(ranks, [&](int num) {
           return replicas % num == 0 &&
                  (options.forecast.program.tolerant || schedule::keeps_bits(options.batch, num));
         });
}

bool asks_for_even(const PartitionOptions& options) {
  const bool runs_again = options.recompute == Recompute::kAll ||
                          options.recompute == Recompute::kRegions ||
                          options.offload == Offload::kAll;
  return options.replicas != 0 || !options.may_replicate || options.stages_per_rank != 1 ||
         options.shard_state || options.placement != Placement::kSpread ||
         options.objective != Objective::kSpeed || options.balance != Balance::kSearch ||
         !options.cuts.empty() || !options.stage_of.empty() || runs_again;
}

/// Forward and backward of the nodes before each cut, and where cuts may fall.
struct WorkChain {
  WorkChain(const graph::Graph& planned, const profile::Profile& profile) {
    const std::vector<bool> allowed = graph::allowed_cuts(planned);
    double sum = 0;
    std::size_t position = 0;
    for (const profile::NodeTime& time : profile::node_times(profile, planned)) {
      if (position > 0 && allowed[position]) {
        cuts.push_back(static_cast<int>(position));
        before_us.push_back(sum);
      }
      sum += time.forward_us + time.backward_us();
      ++position;
    }
    total_us = sum;
  }

  std::vector<int> cuts;
  std::vector<double> before_us;  ///< By cut.
  double total_us = 0;
};

/// A division with the cuts under which its slowest rank has least to do.
struct Division {
  RanksByPosition ranks;
  std::vector<std::size_t> cuts;  ///< Indices in the chain.
  double bound_us = 0;            ///< Of its step, whatever the cuts.
  double guess_us = 0;            ///< And what comes before and after the slowest rank's work.
};

class Divider {
 public:
  /// speeds   of the ranks, in their order.
  Divider(const WorkChain& chain, const BatchLayout& batch, std::vector<double> speeds)
      : chain_(chain),
        num_microbatches_(static_cast<double>(batch.num_microbatches())),
        speeds_(std::move(speeds)) {}

  std::optional<Division> divide(const RanksByPosition& ranks) const {
    if (ranks.size() > chain_.cuts.size() + 1) return std::nullopt;
    std::vector<double> per_us;  // By position: work of one microbatch of all, in a microsecond.
    std::size_t next = 0;
    for (const int num : ranks) {
      double least = speeds_[next];
      for (int i = 0; i < num; ++i) least = std::min(least, speeds_[next++]);
      per_us.push_back(num * least / num_microbatches_);
    }
    double low = 0, high = chain_.total_us / least_of(per_us) * (1 + kRoundedBy);
    std::vector<std::size_t> best = cuts_within(per_us, high);
    constexpr int kHalvings = 40;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      std::vector<std::size_t> cuts = cuts_within(per_us, middle);
      (cuts.empty() ? low : high) = middle;
      if (!cuts.empty()) best = std::move(cuts);
    }
    if (best.empty()) return std::nullopt;
    return Division{ranks, best, low * (1 - kRoundedBy), guess_us(per_us, best)};
  }

 private:
  static double least_of(const std::vector<double>& numbers) {
    return *std::ranges::min_element(numbers);
  }

  double work_us(std::size_t position, const std::vector<std::size_t>& cuts) const {
    const double begin = position == 0 ? 0 : chain_.before_us[cuts[position - 1]];
    return (position == cuts.size() ? chain_.total_us : chain_.before_us[cuts[position]]) - begin;
  }

  /// Each position takes as much as it may in `limit_us`; none where that is not all.
  std::vector<std::size_t> cuts_within(const std::vector<double>& per_us, double limit_us) const {
    std::vector<std::size_t> cuts;
    double done = 0;
    for (std::size_t p = 0; p + 1 < per_us.size(); ++p) {
      const std::size_t least = cuts.empty() ? 0 : cuts.back() + 1;
      const std::size_t most = chain_.cuts.size() - (per_us.size() - 2 - p) - 1;
      const auto behind = std::upper_bound(chain_.before_us.begin(), chain_.before_us.end(),
                                           done + per_us[p] * limit_us);
      const auto far = static_cast<std::size_t>(behind - chain_.before_us.begin());
      if (far <= least) return {};
      cuts.push_back(std::min(far - 1, most));
      done = chain_.before_us[cuts.back()];
    }
    return chain_.total_us - done <= per_us.back() * limit_us ? cuts : std::vector<std::size_t>();
  }

  /// The slowest rank's work, and that of the others on one microbatch.
  double guess_us(const std::vector<double>& per_us, const std::vector<std::size_t>& cuts) const {
    double most = 0;
    for (std::size_t p = 0; p < per_us.size(); ++p) {
      const double work = work_us(p, cuts);
      most = std::max(most, work / per_us[p] + chain_.total_us - work);
    }
    return most;
  }

  const WorkChain& chain_;
  double num_microbatches_;
  std::vector<double> speeds_;
};

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

/// Of one number of ranks, the divisions that promise most.
std::vector<Division> promising(const Problem& whole, const WorkChain& chain, int num_ranks,
                                std::size_t most) {
  std::vector<double> speeds;
  for (int r = 0; r < num_ranks; ++r) speeds.push_back(whole.topology.ranks[r].speed);
  const Divider divider(chain, whole.options.batch, speeds);
  std::vector<Division> divisions;
  for (const RanksByPosition& ranks :
       uneven_divisions(whole.options, num_ranks, static_cast<int>(chain.cuts.size()) + 1)) {
    if (std::optional<Division> one = divider.divide(ranks)) divisions.push_back(*std::move(one));
  }
  std::ranges::stable_sort(divisions, {}, &Division::guess_us);
  divisions.resize(std::min(divisions.size(), most));
  return divisions;
}

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
    for (const Division& division : promising(whole_, chain_, num_ranks, num_tried(left))) {
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

std::vector<RanksByPosition> uneven_divisions(const PartitionOptions& options, int num_ranks,
                                              int most_positions) {
  std::vector<int> parts;
  for (int num = 1; num < num_ranks; ++num) {
    if (keeps_bits(options, {num})) parts.push_back(num);
  }
  std::vector<RanksByPosition> all;
  const int least = options.stages > 0 ? options.stages : 2;
  const int most = options.stages > 0 ? options.stages : kMostPositions;
  for (int positions = least; positions <= std::min(most, most_positions); ++positions) {
    RanksByPosition begun;
    add_divisions(parts, num_ranks, positions, begun, all);
  }
  std::erase_if(all, [&](const RanksByPosition& ranks) {
    return std::ranges::adjacent_find(ranks, std::ranges::not_equal_to()) == ranks.end() ||
           !keeps_bits(options, ranks);
  });
  return all;
}

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
