#include "trireme/plan/partition/planner.h"

#include <algorithm>

#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/partition/stage_copies.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

SearchEffort search_effort(double part) {
  const SearchEffort whole;
  return {.exhaustive = static_cast<std::int64_t>(part * static_cast<double>(whole.exhaustive)),
          .moves = static_cast<std::int64_t>(part * static_cast<double>(whole.moves))};
}

}  // namespace

std::vector<int> numbers_down_from(int most) {
  constexpr int kFew = 8;
  std::vector<int> numbers;
  for (int n = most; n > 0; n = n <= kFew ? n - 1 : std::max(kFew, n * 3 / 4)) {
    numbers.push_back(n);
  }
  return numbers;
}

Planner::Planner(const Problem& problem) : problem_(problem) {
  schedules_ = problem.options.schedule.empty()
                   ? schedule::schedule_names(problem.options.stages_per_rank)
                   : std::vector<std::string>{problem.options.schedule};
  for (const profile::NodeTime& time : profile::node_times(problem.profile, problem.recorded)) {
    work_us_ += time.forward_us + time.backward_us();
  }
}

void Planner::plan() {
  const Goal speed;
  search(speed);
  if (!best_) fail_without_cuts();
  const PartitionOptions& options = problem_.options;
  const bool may_idle = options.may_idle && options.stages == 0 && options.stages_per_rank == 1;
  if (may_idle && options.cuts.empty()) try_fewer_stages();
  if (options.objective != Objective::kMemory || best_->found.score.excess_bytes > 0) return;
  Score& score = best_->found.score;
  const double fastest_us = options.fastest_us > 0 ? options.fastest_us : score.primary;
  const Goal memory{Objective::kMemory, fastest_us * options.max_slowdown};
  score.excess_us = memory.excess_us(score.primary);
  std::swap(score.primary, score.secondary);
  search(memory);
}

/// The recorded graph has enough of them: the planner was asked for copies that leave too few.
void Planner::fail_without_cuts() const {
  throw Error(ErrorKind::kInvalidArgument,
              "partition: with the nodes that are to be copied the graph has too few cuts for " +
                  std::to_string(problem_.num_stages) + " stages; ask for fewer stages");
}

Candidate Planner::candidate() const {
  return evaluate(problem(), *settings_[best_->setting], best_->found.cuts);
}

void Planner::search(const Goal& goal) {
  const auto& pinned = problem_.options.copied_nodes;
  for (const std::string& schedule : schedules_) {
    try_setting(problem_.num_stages,
                setting(schedule, pinned.value_or(std::vector<graph::NodeId>())), goal);
  }
  if (best_ && !pinned && best_->num_stages > 1 && problem_.options.cuts.empty() &&
      problem_.options.may_copy) {
    try_copies(goal);
  }
}

void Planner::try_fewer_stages() {
  for (const int num_stages : numbers_down_from(problem_.num_stages - 1)) {
    if (best_->found.score.excess_bytes > 0) return;  // Fewer stages need more.
    if (least_us(num_stages) >= best_->found.score.primary) return;
    const std::vector<graph::NodeId> copied = settings_[best_->setting]->copied_nodes;
    for (const std::string& schedule : schedules_) {
      try_setting(num_stages, setting(schedule, num_stages > 1 ? copied : decltype(copied)()), {});
    }
  }
}

void Planner::try_copies(const Goal& goal) {
  for (const auto& nodes : copy_candidates(problem_.recorded, problem_.profile)) {
    const Setting& now = *settings_[best_->setting];
    std::vector<graph::NodeId> copied = now.copied_nodes;
    copied.insert(copied.end(), nodes.begin(), nodes.end());
    std::sort(copied.begin(), copied.end());
    copied.erase(std::unique(copied.begin(), copied.end()), copied.end());
    if (copied != now.copied_nodes && can_copy(problem_.recorded, copied)) {
      try_setting(best_->num_stages, setting(now.schedule, std::move(copied)), goal);
    }
  }
}

void Planner::try_setting(int num_stages, std::size_t setting, const Goal& goal) {
  std::unique_ptr<Search>& search = searches_[{num_stages, setting}];
  if (!search) {
    SearchEffort effort = search_effort(problem_.options.effort);
    // Copies begin from good cuts, and there may be many groups of them.
    if (!settings_[setting]->copied_nodes.empty()) effort.moves /= 4;
    const Setting& chosen = *settings_[setting];
    search = std::make_unique<Search>(problem(num_stages, chosen.schedule), chosen, effort);
  }
  std::vector<std::vector<int>> starts;
  std::optional<Score> incumbent;
  if (best_) {
    incumbent = best_->found.score;
    const bool is_same_graph =
        settings_[best_->setting]->copied_nodes == settings_[setting]->copied_nodes;
    if (is_same_graph) starts.push_back(best_->found.cuts);
  }
  std::optional<Search::Found> found = search->find(goal, starts, incumbent);
  if (!found || (best_ && !is_better(found->score, best_->found.score))) return;
  best_ = Best{num_stages, setting, *std::move(found)};
}

std::size_t Planner::setting(const std::string& schedule, std::vector<graph::NodeId> copied) {
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (settings_[i]->schedule == schedule && settings_[i]->copied_nodes == copied) return i;
  }
  auto setting = std::make_unique<Setting>(Setting{schedule, std::move(copied), {}});
  setting->planned = setting->copied_nodes.empty()
                         ? problem_.recorded
                         : graph::copy_to_consumers(problem_.recorded, setting->copied_nodes);
  settings_.push_back(std::move(setting));
  return settings_.size() - 1;
}

namespace {

/// By stage: where the schedule runs it.
std::vector<int> positions_of(const std::string& schedule, int num_stages, int stages_per_rank) {
  const schedule::Schedule order =
      schedule::make_schedule(schedule, num_stages, 1, stages_per_rank);
  std::vector<int> positions;
  for (int s = 0; s < num_stages; ++s) positions.push_back(order.rank_of(s));
  return positions;
}

}  // namespace

const Problem& Planner::problem(int num_stages, const std::string& schedule) {
  const int each = problem_.options.stages_per_rank;
  const std::vector<int> positions = positions_of(schedule, num_stages, each);
  const auto [entry, is_new] = problems_.try_emplace(positions, problem_);
  entry->second.num_stages = num_stages;
  if (each > 1) entry->second.positions = positions;
  return entry->second;
}

const Problem& Planner::problem() const {
  return problems_.at(positions_of(settings_[best_->setting]->schedule, best_->num_stages,
                                   problem_.options.stages_per_rank));
}

/// What no plan with so many stages beats.
double Planner::least_us(int num_stages) const {
  return static_cast<double>(problem_.num_microbatches()) * work_us_ / num_stages;
}

}  // namespace trireme::partition
