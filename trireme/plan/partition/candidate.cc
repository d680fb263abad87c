#include "trireme/plan/partition/candidate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/partition/stage_copies.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::partition {
namespace {

layout::Plan make_plan(const Problem& problem, const Setting& setting,
                       const std::vector<int>& cuts) {
  layout::Plan plan;
  plan.graph_sha256 = problem.graph_sha256;
  plan.objective = problem.options.objective == Objective::kMemory ? "memory" : "speed";
  plan.balance = problem.options.balance;
  plan.batch = problem.options.batch;
  layout::Role role;
  role.mesh.pipeline = problem.num_positions();
  role.mesh.data = problem.options.replicas;
  for (int position = 0; position < role.mesh.pipeline; ++position) {
    for (int r = 0; r < role.mesh.data; ++r) {
      role.placement.push_back(problem.rank_at(position, r));
    }
  }
  plan.roles.push_back(std::move(role));
  plan.node_order = setting.node_order;
  plan.copied_nodes = setting.copied_nodes;
  plan.schedule = schedule_choice(problem.options, setting.schedule);
  plan.sharded_state = problem.options.shard_state;
  plan.sharded_parameters = problem.options.shard_parameters;
  plan.stages.resize(cuts.size() + 1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (!problem.positions.empty()) plan.stages[s].position = problem.positions[s];
    plan.stages[s].begin = s == 0 ? 0 : cuts[s - 1];
    plan.stages[s].end =
        s == cuts.size() ? static_cast<int>(setting.planned.nodes.size()) : cuts[s];
  }
  return plan;
}

}  // namespace

double Problem::least_speed(int stage) const {
  double least = kUnlimited;
  for (int r = 0; r < options.replicas; ++r) {
    least = std::min(least, topology.ranks[rank(stage, r)].speed);
  }
  return least;
}

double Problem::most_speed(int stage) const {
  double most = 0;
  for (int r = 0; r < options.replicas; ++r) {
    most = std::max(most, topology.ranks[rank(stage, r)].speed);
  }
  return most;
}

std::int64_t Problem::memory_limit(int stage) const {
  if (options.device_memory_bytes > 0) return options.device_memory_bytes;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int r = 0; r < options.replicas; ++r) {
    least = std::min(least, topology.ranks[rank(stage, r)].memory_bytes);
  }
  return least;
}

profile::LinkKind Problem::link_kind(int from_stage, int to_stage) const {
  for (int r = 0; r < options.replicas; ++r) {
    const profile::LinkKind kind =
        simulate::link_kind(topology, rank(from_stage, r), rank(to_stage, r));
    if (kind != profile::LinkKind::kHost) return kind;
  }
  return profile::LinkKind::kHost;
}

std::int64_t excess_bytes(const Problem& problem, const Candidate& candidate, int stage) {
  std::int64_t most = 0;
  for (int r = 0; r < problem.options.replicas; ++r) {
    most = std::max(most, candidate.forecast.memory[problem.rank(stage, r)].total());
  }
  return most - problem.memory_limit(stage);
}

std::int64_t total_excess(const Problem& problem, const Candidate& candidate) {
  std::map<int, std::int64_t> excess;
  for (int s = 0; s < problem.num_stages; ++s) {
    excess[problem.position(s)] = std::max<std::int64_t>(0, excess_bytes(problem, candidate, s));
  }
  std::int64_t total = 0;
  for (const auto& [position, bytes] : excess) total += bytes;
  return total;
}

Score score(const Problem& problem, const Candidate& candidate, const Goal& goal) {
  Score score;
  for (int s = 0; s < problem.num_stages; ++s) {
    score.excess_bytes = std::max(score.excess_bytes, excess_bytes(problem, candidate, s));
  }
  const double step_us = candidate.forecast.simulation.step_us;
  score.excess_us = goal.excess_us(step_us);
  score.primary = step_us;
  score.secondary = static_cast<double>(candidate.forecast.peak_bytes());
  if (goal.objective == Objective::kMemory) std::swap(score.primary, score.secondary);
  return score;
}

bool is_better(const Score& one, const Score& other) {
  constexpr double kRounding = 1e-9;
  const bool is_same = one.excess_bytes == other.excess_bytes && one.excess_us == other.excess_us &&
                       std::abs(one.primary - other.primary) <= kRounding * other.primary;
  return is_same ? one.secondary < other.secondary : one < other;
}

layout::ScheduleChoice schedule_choice(const PartitionOptions& options, const std::string& name) {
  layout::ScheduleChoice choice{.name = name, .parameters = {}};
  if (options.active_microbatches > 0) {
    choice.parameters.emplace(schedule::kActiveMicrobatches, options.active_microbatches);
  }
  return choice;
}

schedule::Schedule make_schedule(const Problem& problem, const Setting& setting) {
  return schedule::make_schedule(schedule_choice(problem.options, setting.schedule),
                                 problem.num_stages, static_cast<int>(problem.num_microbatches()),
                                 problem.options.stages_per_rank);
}

layout::Plan plan_of(const Problem& problem, const Setting& setting, const std::vector<int>& cuts) {
  layout::Plan plan = make_plan(problem, setting, cuts);
  add_stage_copies(
      setting.planned, problem.profile,
      [&problem](int from, int to) { return problem.link_kind(from, to); }, plan);
  return plan;
}

Candidate evaluate(const Problem& problem, const Setting& setting, const std::vector<int>& cuts) {
  return forecast_of(problem, setting.planned, plan_of(problem, setting, cuts));
}

Candidate forecast_of(const Problem& problem, const graph::Graph& planned, layout::Plan plan) {
  const layout::ParameterMap map =
      layout::make_parameter_map(planned, plan, {.graph_sha256 = problem.graph_sha256});
  simulate::ForecastOptions options = problem.options.forecast;
  options.plays_alike_once = true;
  simulate::Forecast forecast =
      simulate::forecast({planned, plan, map, problem.profile, problem.topology}, options);
  return {std::move(plan), std::move(forecast)};
}

namespace {

/// A parameter that several stages use.
struct Shared {
  std::string name;
  std::int64_t num_elements = 0;
  std::set<int> stages;
};

std::vector<Shared> largest_shared(const graph::Graph& planned, const layout::Plan& plan) {
  constexpr std::size_t kMost = 8;
  const auto positions = graph::node_positions(planned);
  std::map<int, Shared> all;
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const graph::Parameter& parameter = planned.parameters[site.parameter];
    Shared& shared = all[site.parameter];
    shared.name = parameter.name;
    shared.num_elements = graph::num_elements_at(planned.values[parameter.value], 0);
    shared.stages.insert(layout::stage_of(plan, positions.at(site.nodes.front())));
  }
  std::vector<Shared> result;
  for (auto& [index, shared] : all) {
    if (shared.stages.size() > 1) result.push_back(std::move(shared));
  }
  std::ranges::stable_sort(result, std::greater{}, &Shared::num_elements);
  result.resize(std::min(result.size(), kMost));
  return result;
}

}  // namespace

Candidate with_tie_owners(const Problem& problem, Candidate candidate) {
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  // Not slower than it is, where memory is the objective.
  const Goal goal{problem.options.objective, candidate.forecast.simulation.step_us};
  for (const Shared& shared : largest_shared(planned, candidate.plan)) {
    const int emptiest = *std::ranges::min_element(
        shared.stages, {}, [&](int stage) { return excess_bytes(problem, candidate, stage); });
    if (emptiest == *shared.stages.begin()) continue;
    layout::Plan plan = candidate.plan;
    plan.tie_owners.push_back({shared.name, emptiest});
    Candidate other = forecast_of(problem, planned, std::move(plan));
    if (score(problem, other, goal) < score(problem, candidate, goal)) candidate = std::move(other);
  }
  return candidate;
}

}  // namespace trireme::partition
