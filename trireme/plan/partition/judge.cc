#include "trireme/plan/partition/judge.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

constexpr std::int64_t kActionsPerStage = 24;  ///< What a stage costs beside its actions.
/// What a node costs in the ranges that a move makes anew: times alone, or tensors too.
constexpr std::int64_t kTimeOfNode = 16, kMemoryOfNode = 100;
constexpr std::int64_t kForecastActions = 200;  ///< What a node costs in a whole forecast.
constexpr std::int64_t kLong = 10'000;          ///< Actions x stages.
constexpr double kOpen = std::numeric_limits<double>::infinity();  ///< Of a peak.
constexpr double kRoundedDown = 1 - 1e-9;                          ///< Sums in another order.

}  // namespace

Judge::Judge(const Problem& problem, const Setting& setting)
    : problem_(problem), setting_(setting), estimator_(problem, setting) {
  const bool splits = estimator_.splits_backwards();
  work_before_us_ = {0};
  lead_before_us_ = {0};
  const std::vector<profile::NodeTime> times =
      profile::node_times(problem.profile, setting.planned);
  for (const profile::NodeTime& time : times) {
    work_before_us_.push_back(work_before_us_.back() + time.forward_us + time.backward_us());
    lead_before_us_.push_back(lead_before_us_.back() + time.forward_us +
                              (splits ? 0 : time.backward_us()));
  }
  read_crossings();
  is_long_ = static_cast<std::int64_t>(estimator_.num_actions()) * problem.num_stages > kLong;
  for (int s = 0; s < problem.num_stages; ++s) {
    limits_.push_back(problem.memory_limit(s));
    slowness_.push_back(1 / problem.most_speed(s));
  }
}

void Judge::begin(const Goal& goal) {
  goal_ = goal;
  asked_.clear();
  spent_ = 0;
}

std::int64_t Judge::price() const {
  const auto num_nodes = static_cast<std::int64_t>(setting_.planned.nodes.size());
  const bool is_speed = goal_.objective == Objective::kSpeed;
  const std::int64_t ranges =
      (is_speed ? kTimeOfNode : kMemoryOfNode) * num_nodes / problem_.num_stages;
  const std::int64_t actions =
      estimator_.num_actions() + kActionsPerStage * problem_.num_stages + ranges;
  if (estimator_.is_lean()) return actions;
  return kForecastActions * num_nodes + problem_.num_stages * actions;
}

void Judge::read_crossings() {
  const graph::Graph& graph = setting_.planned;
  const auto num_nodes = static_cast<int>(graph.nodes.size());
  std::vector<int> producers(graph.values.size(), -1);
  std::vector<Crossing> uses;
  for (int p = 0; p < num_nodes; ++p) {
    for (const graph::ValueId id : graph::input_values(graph.nodes[p])) {
      const bool is_sent = producers[id] >= 0 && graph.values[id].requires_grad;
      if (is_sent) uses.push_back({producers[id], p});
    }
    for (const graph::ValueId id : graph.nodes[p].outputs) {
      if (id >= 0 && graph.values[id].producer == graph.nodes[p].id) producers[id] = p;
    }
  }
  std::stable_sort(uses.begin(), uses.end(), [](const Crossing& a, const Crossing& b) {
    return a.consumer - a.producer < b.consumer - b.producer;
  });
  shortest_.resize(num_nodes + 1);
  std::vector<int> next(num_nodes + 2);  // By cut: the first from there on that has none yet.
  std::iota(next.begin(), next.end(), 0);
  const auto open = [&next](int cut) {
    while (next[cut] != cut) cut = next[cut] = next[next[cut]];
    return cut;
  };
  for (const Crossing& use : uses) {
    for (int cut = open(use.producer + 1); cut <= use.consumer; cut = open(cut)) {
      shortest_[cut] = use;
      next[cut] = cut + 1;
    }
  }
}

double Judge::step_bound_us(const Cuts& cuts) const {
  const auto m = static_cast<double>(problem_.num_microbatches());
  const auto num_nodes = static_cast<int>(setting_.planned.nodes.size());
  double bound = 0, before = 0;
  for (std::size_t s = 0; s <= cuts.size(); ++s) {
    const int begin = s == 0 ? 0 : cuts[s - 1], end = s == cuts.size() ? num_nodes : cuts[s];
    const double work = (work_before_us_[end] - work_before_us_[begin]) * slowness_[s];
    bound = std::max(bound, before + m * work);
    const Crossing& use = shortest_[end];
    const int next_end = s + 1 >= cuts.size() ? num_nodes : cuts[s + 1];
    const bool waits = use.producer >= begin && use.consumer < next_end;
    before = waits ? before + (lead_before_us_[end] - lead_before_us_[begin]) * slowness_[s] : 0;
  }
  return bound * kRoundedDown;
}

void Judge::add_memory(const Cuts& cuts, Score& score) {
  const std::vector<std::int64_t> peaks = estimator_.peak_bytes(cuts);
  std::int64_t most = 0;
  for (std::size_t s = 0; s < peaks.size(); ++s) {
    score.excess_bytes = std::max(score.excess_bytes, peaks[s] - limits_[s]);
    most = std::max(most, peaks[s]);
  }
  const auto peak = static_cast<double>(most);
  (goal_.objective == Objective::kSpeed ? score.secondary : score.primary) = peak;
}

Score Judge::score(const Cuts& cuts) {
  Score score = time_score(cuts);
  add_memory(cuts, score);
  return score;
}

Judge::Scored Judge::quickly_scored(const Cuts& cuts) {
  Scored scored{cuts, time_score(cuts)};
  if (!leaves_open(cuts)) add_memory(cuts, scored.score);
  return scored;
}

/// The score with its peak.
Score Judge::closed(const Scored& scored) {
  Score score = scored.score;
  if (score.secondary == kOpen) add_memory(scored.cuts, score);
  return score;
}

bool Judge::is_less(const Scored& one, const Scored& other) {
  const auto without_peak = [](Score score) {
    score.secondary = 0;
    return score;
  };
  const Score own = without_peak(one.score), others = without_peak(other.score);
  return own == others ? closed(one) < closed(other) : own < others;
}

/// With the peak open. Of steps that are longer than `most_us` any number above that.
Score Judge::time_score(const Cuts& cuts, double most_us) {
  spent_ += price();
  const double step_us = estimator_.step_us(cuts, most_us);
  const bool is_speed = goal_.objective == Objective::kSpeed;
  return {0, goal_.excess_us(step_us), is_speed ? step_us : kOpen, is_speed ? kOpen : step_us};
}

bool Judge::leaves_open(const Cuts& cuts) {
  return goal_.objective == Objective::kSpeed && estimator_.surely_fits(cuts, limits_);
}

std::optional<Score> Judge::better(const Cuts& cuts, const Scored& best) {
  const Score& than = best.score;
  const bool is_speed = goal_.objective == Objective::kSpeed;
  const bool fits = than.excess_bytes <= 0 && than.excess_us <= 0;
  if (fits && step_bound_us(cuts) > (is_speed ? than.primary : goal_.max_step_us)) {
    return std::nullopt;
  }
  if (!asked_.insert(cuts).second) return std::nullopt;
  if (fits && !is_speed && static_cast<double>(estimator_.least_kept_bytes(cuts)) > than.primary) {
    if (!is_long_) spent_ += price();  // So that what is tried does not depend on it.
    return std::nullopt;
  }
  if (fits && !is_speed && is_long_ &&
      static_cast<double>(estimator_.least_peak_bytes(cuts)) > than.primary) {
    return std::nullopt;
  }
  const double useful_us = is_speed ? than.primary : goal_.max_step_us;
  Score score = time_score(cuts, fits ? useful_us : kUnlimited);
  if (fits && (is_speed ? score.primary > than.primary : score.excess_us > 0)) return std::nullopt;
  if (fits && is_speed && score.primary < than.primary && leaves_open(cuts)) return score;
  add_memory(cuts, score);
  if (score < closed(best)) return score;
  return std::nullopt;
}

}  // namespace trireme::partition
