#include "trireme/plan/partition/planner.h"

#include <algorithm>
#include <set>

#include "trireme/error.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/partition/block_graph.h"
#include "trireme/plan/partition/less_memory.h"
#include "trireme/plan/partition/rank_orders.h"
#include "trireme/plan/partition/stage_copies.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/crowded_cores.h"

namespace trireme::partition {
namespace {

/// Numbers of ranks up to this are all searched.
constexpr int kFew = 8;
/// More are where a first look at their cuts is at most that far from the best, until so many in a row were no better.
constexpr double kLookedNear = 1.02;
constexpr int kMostInVain = 2;
/// What is decided after the cuts (owners, recomputation, buckets) gains less than this, as a rule.
constexpr double kNearlyAsGood = 1.1;

SearchEffort search_effort(double part) {
  const SearchEffort whole;
  return {.exhaustive = static_cast<std::int64_t>(part * static_cast<double>(whole.exhaustive)),
          .moves = static_cast<std::int64_t>(part * static_cast<double>(whole.moves))};
}

std::vector<std::string> schedules_of(const PartitionOptions& options) {
  if (!options.schedule.empty()) return {options.schedule};
  return schedule::schedule_names(options.stages_per_rank);
}

/// Whether steps are longer than the search knows, wherever cuts fall.
bool runs_stages_again(const PartitionOptions& options) {
  return options.recompute == Recompute::kAll || options.recompute == Recompute::kRegions ||
         options.offload == Offload::kAll;
}

bool splits_backwards(const std::string& schedule, int stages_per_rank) {
  return schedule::splits_backwards(
      schedule::make_schedule(schedule, stages_per_rank, 1, stages_per_rank));
}

/// Groups of nodes that stages may run themselves.
std::vector<std::vector<graph::NodeId>> copies_of(const Problem& problem) {
  const PartitionOptions& options = problem.options;
  if (options.copied_nodes) return {*options.copied_nodes};
  if (!options.may_copy || !options.cuts.empty() || !options.stage_of.empty()) return {};
  if (options.balance != Balance::kSearch) return {};
  return copy_candidates(problem.recorded, problem.profile);
}

bool may_reorder(const Problem& problem) {
  const PartitionOptions& options = problem.options;
  return options.may_reorder && options.cuts.empty() && options.stage_of.empty() &&
         options.balance == Balance::kSearch &&
         BlockGraph(problem.recorded, problem.profile).has_orders();
}

std::set<graph::NodeId> all_of(const std::vector<std::vector<graph::NodeId>>& groups) {
  std::set<graph::NodeId> all;
  for (const auto& group : groups) all.insert(group.begin(), group.end());
  return all;
}

}  // namespace

std::vector<int> numbers_down_from(int most) {
  std::vector<int> numbers;
  for (int n = most; n > 0; n = n <= kFew ? n - 1 : std::max(kFew, n * 3 / 4)) {
    numbers.push_back(n);
  }
  return numbers;
}

Planner::Planner(const Problem& problem)
    : problem_(problem),
      schedules_(schedules_of(problem.options)),
      copies_(copies_of(problem)),
      bound_(problem.recorded, problem.profile, all_of(copies_)),
      reorders_(may_reorder(problem)) {
  for (const std::string& schedule : schedules_) {
    splits_backwards_ =
        splits_backwards_ || splits_backwards(schedule, problem.options.stages_per_rank);
  }
}

void Planner::plan() {
  search(problem_.num_stages);
  const PartitionOptions& options = problem_.options;
  if (options.may_idle && options.stages == 0) search_fewer_stages();
  if (bests_.empty()) fail_without_plans();
  if (options.objective != Objective::kMemory || best()->found.score.excess_bytes > 0) return;
  const int num_stages = best()->num_stages;
  const double best_us = best()->found.score.primary;
  const double fastest_us = options.fastest_us > 0 ? options.fastest_us : best_us;
  goal_ = {Objective::kMemory, fastest_us * options.max_slowdown};
  for (Bests* bests : {&bests_, &firsts_}) {
    for (auto& [key, best] : *bests) {
      Score& score = best.found.score;
      score.excess_us = goal_.excess_us(score.primary);
      std::swap(score.primary, score.secondary);
    }
  }
  search(problem_.num_stages);
  if (num_stages != problem_.num_stages) search(num_stages);
}

/// The recorded graph has enough cuts: the planner was asked for what leaves too few.
void Planner::fail_without_plans() const {
  const PartitionOptions& options = problem_.options;
  std::string problem = "with the nodes that are to be copied the graph has too few cuts for " +
                        std::to_string(problem_.num_stages) + " stages; ask for fewer stages";
  if (!options.cuts.empty() || !options.stage_of.empty()) {
    problem = "no cuts into " + std::to_string(problem_.num_stages) +
              " stages keep all that --cut-at and --stage-of ask for; leave some of it out, or "
              "ask for another number of stages";
  }
  if (!refusal_.empty()) problem = refusal_;
  throw Error(ErrorKind::kInvalidArgument, "partition: " + problem);
}

const Planner::Best* Planner::best() const {
  const Best* least = nullptr;
  for (const auto& [key, best] : bests_) {
    if (least == nullptr || is_better(best.found.score, least->found.score)) least = &best;
  }
  return least;
}

const Planner::Best* Planner::best_of(int num_stages) const {
  const Best* least = nullptr;
  for (const auto& [key, best] : bests_) {
    if (key.first != num_stages) continue;
    if (least == nullptr || is_better(best.found.score, least->found.score)) least = &best;
  }
  return least;
}

Planner::Proposal Planner::proposal(const Best& best) const {
  const Problem& problem = this->problem(best);
  return {problem, evaluate(problem, *settings_[best.setting], best.found.cuts)};
}

std::vector<Planner::Proposal> Planner::proposals() const {
  std::vector<Proposal> proposals = {proposal(*best())};
  const Score& least = best()->found.score;
  const bool fits = least.excess_bytes <= 0;
  const PartitionOptions& options = problem_.options;
  const bool may_save = options.recompute != Recompute::kNone || options.offload != Offload::kNone;
  // Schedules that were worse may be better for stages that hold less.
  const bool takes_schedules =
      options.effort >= 1 && may_save &&
      (runs_stages_again(options) || is_tight(proposals[0].problem, proposals[0].candidate));
  std::vector<const Best*> others;
  for (const auto& [key, one] : bests_) {
    const Score& score = one.found.score;
    const bool is_near = score.excess_bytes <= 0 && score.excess_us <= least.excess_us &&
                         score.primary <= kNearlyAsGood * least.primary;
    const bool may_be = takes_schedules || (best_of(key.first) == &one && (is_near || !fits));
    if (may_be && &one != best()) others.push_back(&one);
    // And so may other orders of ranks.
    if (takes_schedules && one.order != 0) {
      const auto first = firsts_.find(key);
      if (first != firsts_.end()) others.push_back(&first->second);
    }
  }
  std::ranges::stable_sort(others, [](const Best* one, const Best* other) {
    return is_better(one->found.score, other->found.score);
  });
  for (const Best* one : others) proposals.push_back(proposal(*one));
  return proposals;
}

void Planner::search(int num_stages) {
  const auto& pinned = problem_.options.copied_nodes;
  // Those with less idle time first: where ranks share cores, others are left out that are far from them.
  for (auto schedule = schedules_.rbegin(); schedule != schedules_.rend(); ++schedule) {
    try_setting(num_stages,
                setting(*schedule, {{}, pinned.value_or(std::vector<graph::NodeId>())}));
  }
  try_node_orders(num_stages);
  if (!pinned && num_stages > 1 && best_of(num_stages) != nullptr) try_copies(num_stages);
}

void Planner::search_fewer_stages() {
  const int each = problem_.options.stages_per_rank;
  const auto least = static_cast<int>(problem_.options.cuts.size()) + 1;
  const std::vector<int> some = numbers_down_from(problem_.num_positions());
  int num_vain = 0;
  for (int ranks = problem_.num_positions() - 1; ranks > 0 && ranks * each >= least; --ranks) {
    const bool fits = !bests_.empty() && best()->found.score.excess_bytes <= 0;
    if (fits && !may_win(ranks * each)) return;  // Nor do fewer.
    if (ranks <= kFew || (!fits && std::ranges::count(some, ranks) > 0)) {
      search(ranks * each);
    } else if (fits && num_vain < kMostInVain && looks_good(ranks * each)) {
      num_vain = search_near(ranks * each) ? 0 : num_vain + 1;
    }
    std::erase_if(searches_,
                  [&](const auto& one) { return std::get<0>(one.first) == ranks * each; });
  }
}

/// Under the best schedule so far, and where that is better now under all; whether it is.
bool Planner::search_near(int num_stages) {
  const Best before = *best();
  try_setting(num_stages, before.setting);
  if (best()->num_stages != num_stages) return false;
  search(num_stages);
  return true;
}

/// Whether so many stages may be faster than the best so far. Surely not, where it says no.
bool Planner::may_win(int num_stages) const {
  const int each = problem_.options.stages_per_rank;
  double speed = 0;  // Were all as fast as the fastest.
  for (const topology::RankPlace& rank : problem_.topology.ranks) {
    speed = std::max(speed, rank.speed);
  }
  const double best_us = best()->found.score.primary * speed;
  const StageBound::Steps steps{problem_.num_microbatches(), splits_backwards_};
  if (each == 1 && !reorders_) return bound_.least_stages(best_us, steps) <= num_stages;
  const auto m = static_cast<double>(problem_.num_microbatches());
  return m * bound_.work_us() * each / num_stages < best_us;
}

/// Whether ranks in another order may be faster than what is known of the schedule. Surely not, where it says no.
bool Planner::may_win(const Best& tried) const {
  const Setting& setting = *settings_[tried.setting];
  const auto known = bests_.find({tried.num_stages, setting.schedule});
  if (tried.order == 0 || known == bests_.end() || goal_.objective != Objective::kSpeed)
    return true;
  const Score& score = known->second.found.score;
  const bool is_bounded = setting.node_order.empty() && problem_.options.stages_per_rank == 1;
  if (score.excess_bytes > 0 || !is_bounded) return true;
  const Problem& problem = this->problem(tried);
  std::vector<double> speeds;
  for (int s = 0; s < tried.num_stages; ++s) speeds.push_back(problem.most_speed(s));
  return bound_.may_do(score.primary,
                       {problem_.num_microbatches(),
                        splits_backwards(setting.schedule, problem_.options.stages_per_rank)},
                       speeds);
}

/// Whether cuts that are quickly found, under the best schedule so far, come near to the best.
bool Planner::looks_good(int num_stages) {
  const Best& now = *best();
  const StageBound::Steps steps{problem_.num_microbatches(), splits_backwards_};
  const std::vector<int> cuts = bound_.cuts(num_stages, steps);
  if (std::ssize(cuts) + 1 != num_stages) return false;  // One stage less is as good.
  Search& search =
      search_of({.num_stages = num_stages,
                 .setting = setting(
                     settings_[now.setting]->schedule,
                     {{}, problem_.options.copied_nodes.value_or(std::vector<graph::NodeId>())})});
  const std::optional<double> step_us = search.step_us(cuts);
  return step_us && *step_us <= kLookedNear * now.found.score.primary;
}

void Planner::try_copies(int num_stages) {
  for (const auto& nodes : copies_) {
    const Setting& now = *settings_[best_of(num_stages)->setting];
    std::vector<graph::NodeId> copied = now.copied_nodes;
    copied.insert(copied.end(), nodes.begin(), nodes.end());
    std::sort(copied.begin(), copied.end());
    copied.erase(std::unique(copied.begin(), copied.end()), copied.end());
    if (copied == now.copied_nodes || !can_copy(problem_.recorded, copied)) continue;
    Passes passes{now.node_order, std::move(copied)};
    const auto& order = passes.node_order;
    if (!order.empty() &&
        !graph::why_not_in_order(problem_.recorded, order, passes.copied).empty()) {
      passes.node_order.clear();  // With these copies it would change bits.
    }
    try_setting(num_stages, setting(now.schedule, passes));
  }
}

/// Whether the schedule holds no more microbatches than may be active.
bool Planner::has_schedule(int num_stages, const std::string& schedule) {
  if (problem_.options.active_microbatches == 0) return true;
  try {
    Problem problem = problem_;
    problem.num_stages = num_stages;
    make_schedule(problem, {schedule, {}, problem_.recorded});
    return true;
  } catch (const Error& error) {
    refusal_ = error.message();
    return false;
  }
}

void Planner::try_setting(int num_stages, std::size_t setting) {
  if (!has_schedule(num_stages, settings_[setting]->schedule)) return;
  for (std::size_t order = 0; order < orders(num_stages).size(); ++order) {
    const Best tried{.num_stages = num_stages, .setting = setting, .order = order};
    if (may_win(tried)) try_order(tried);
  }
}

void Planner::try_order(const Best& tried) {
  const int num_stages = tried.num_stages;
  const std::size_t setting = tried.setting;
  std::vector<std::vector<int>> starts;
  std::optional<Score> incumbent;
  if (const Best* best = best_of(num_stages)) {
    incumbent = best->found.score;
    const bool is_same_graph = &settings_[best->setting]->planned == &settings_[setting]->planned;
    if (is_same_graph) starts.push_back(best->found.cuts);
  }
  std::optional<Search::Found> found = search_of(tried).find(goal_, starts, incumbent);
  if (!found) return;
  Best best = tried;
  best.found = *std::move(found);
  keep(bests_, best);
  if (best.order == 0) keep(firsts_, best);
}

/// Where it is better than the one of its number of stages and schedule.
void Planner::keep(Bests& bests, const Best& found) const {
  const auto [own, is_new] =
      bests.try_emplace({found.num_stages, settings_[found.setting]->schedule}, found);
  if (!is_new && is_better(found.found.score, own->second.found.score)) own->second = found;
}

Search& Planner::search_of(const Best& tried) {
  std::unique_ptr<Search>& search = searches_[{tried.num_stages, tried.setting, tried.order}];
  if (!search) {
    const Setting& chosen = *settings_[tried.setting];
    SearchEffort effort = search_effort(problem_.options.effort);
    const int num_ranks =
        tried.num_stages / problem_.options.stages_per_rank * problem_.options.replicas;
    // Copies begin from good cuts, and there may be many groups of them. So do orders; where ranks share cores, that is dear.
    const bool is_crowded_order = !chosen.node_order.empty() &&
                                  !simulate::crowded_cores(problem_.topology, num_ranks).empty();
    if (!chosen.copied_nodes.empty() || is_crowded_order) effort.moves /= 4;
    search = std::make_unique<Search>(problem(tried), chosen, effort);
  }
  return *search;
}

std::size_t Planner::setting(const std::string& schedule, const Passes& passes) {
  const graph::Graph& planned = graph_after(passes);
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (settings_[i]->schedule == schedule && &settings_[i]->planned == &planned) return i;
  }
  settings_.push_back(
      std::make_unique<Setting>(Setting{schedule, passes.copied, planned, passes.node_order}));
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

const std::vector<std::vector<int>>& Planner::orders(int num_stages) {
  const auto [entry, is_new] = orders_.try_emplace(num_stages);
  if (is_new) {
    const int num_positions = num_stages / problem_.options.stages_per_rank;
    entry->second = rank_orders(problem_, num_positions * problem_.options.replicas);
  }
  return entry->second;
}

const Problem& Planner::problem(const Best& best) const {
  const int each = problem_.options.stages_per_rank;
  const std::vector<int> positions =
      positions_of(settings_[best.setting]->schedule, best.num_stages, each);
  const auto [entry, is_new] = problems_.try_emplace({positions, best.order}, problem_);
  Problem& problem = entry->second;
  problem.num_stages = best.num_stages;
  if (each > 1) problem.positions = positions;
  if (best.order > 0) problem.order = orders_.at(best.num_stages)[best.order];
  return problem;
}

}  // namespace trireme::partition
