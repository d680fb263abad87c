#include "trireme/plan/simulate/forecast.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_set>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/alike_replicas.h"
#include "trireme/plan/simulate/expected_messages.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::simulate {

double plan_bound_us(const std::vector<StageCost>& costs, const layout::Plan& plan,
                     const topology::Topology& topology,
                     const std::vector<layout::Crossing>& crossings) {
  const layout::Role& role = layout::train_role(plan);
  const schedule::Schedule schedule = schedule::schedule_of(plan);
  const auto m = static_cast<double>(schedule.num_microbatches);
  std::vector<std::vector<int>> senders(costs.size());
  for (const layout::Crossing& crossing : crossings) {
    for (std::size_t i = 1; crossing.has_gradient && i < crossing.stages.size(); ++i) {
      senders[crossing.stages[i]].push_back(crossing.stages[0]);
    }
  }
  double bound = 0;
  const bool splits = schedule::splits_backwards(schedule);
  std::map<int, double> work;  // By rank.
  for (int r = 0; r < role.mesh.data; ++r) {
    const auto speed = [&](std::size_t s) {
      return topology.ranks[layout::rank_of(plan, static_cast<int>(s), r)].speed;
    };
    std::vector<double> before(costs.size());
    for (std::size_t s = 0; s < costs.size(); ++s) {
      for (const int from : senders[s]) {
        const double after_us = splits ? 0 : costs[from].backward_us();
        before[s] =
            std::max(before[s], before[from] + (costs[from].forward_us + after_us) / speed(from));
      }
      const double work_us = costs[s].work_us() / speed(s);
      bound = std::max(bound, before[s] + m * work_us);
      work[layout::rank_of(plan, static_cast<int>(s), r)] += work_us;
    }
  }
  for (const auto& [rank, us] : work) bound = std::max(bound, m * us);
  for (const topology::SharedCores& shared : topology::shared_cores(topology)) {
    double sum = 0;
    for (const int rank : shared.ranks) sum += work.contains(rank) ? work.at(rank) : 0;
    bound = std::max(bound, m * sum / shared.num_at_full_speed);
  }
  return bound;
}

double any_plan_bound_us(double path_us, double work_us, std::int64_t num_microbatches,
                         double num_processors) {
  return std::max(path_us, static_cast<double>(num_microbatches) * work_us / num_processors);
}

namespace {

/// Forward and backward of one microbatch of the graph without its copies.
double recorded_work_us(const graph::Graph& planned, const profile::Profile& profile) {
  const std::vector<profile::NodeTime> times = profile::node_times(profile, planned);
  double work = 0;
  for (std::size_t p = 0; p < times.size(); ++p) {
    if (planned.nodes[p].copy_of < 0) work += times[p].forward_us + times[p].backward_us();
  }
  return work;
}

/// Forward and gradients of inputs along the longest path of values with gradients in that graph.
double longest_path_us(const graph::Graph& planned, const profile::Profile& profile) {
  const std::vector<profile::NodeTime> times = profile::node_times(profile, planned);
  std::vector<double> until(planned.values.size());  // By value: that makes it.
  double longest = 0;
  for (std::size_t p = 0; p < times.size(); ++p) {
    const graph::Node& node = planned.nodes[p];
    double path = 0;
    for (const graph::ValueId id : graph::input_values(node)) {
      if (planned.values[id].requires_grad) path = std::max(path, until[id]);
    }
    if (node.copy_of < 0) path += times[p].forward_us + times[p].input_us;
    for (const graph::ValueId id : node.outputs) {
      if (id >= 0) until[id] = path;
    }
    longest = std::max(longest, path);
  }
  return longest;
}

double largest_speed(const layout::Role& role, const topology::Topology& topology) {
  double most = 0;
  for (const int rank : role.placement) most = std::max(most, topology.ranks[rank].speed);
  return most;
}

/// Processors of speed 1 that a replica has: its ranks, or the fastest that the cores of all suffice for if these are less.
double num_processors(const layout::Role& role, const topology::Topology& topology) {
  const std::unordered_set<int> placed(role.placement.begin(), role.placement.end());
  double processors = 0;
  for (const topology::SharedCores& shared : topology::shared_cores(topology)) {
    std::vector<double> speeds;
    for (const int rank : shared.ranks) {
      if (placed.contains(rank)) speeds.push_back(topology.ranks[rank].speed);
    }
    std::ranges::sort(speeds, std::greater{});
    double left = shared.num_at_full_speed;
    for (const double speed : speeds) {
      processors += speed * std::clamp(left, 0.0, 1.0);
      left -= 1;
    }
  }
  return std::min(processors / role.mesh.data, role.mesh.pipeline * largest_speed(role, topology));
}

/// By stage: of the rank that runs it, when that holds most.
std::vector<std::int64_t> activation_bytes(const layout::Plan& plan,
                                           const std::vector<RankMemory>& memory) {
  std::vector<std::int64_t> bytes;
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    bytes.push_back(memory[layout::rank_of(plan, s, 0)].activations);
  }
  return bytes;
}

/// Those that are the first of their kind.
std::vector<int> played_replicas(const std::vector<int>& alike) {
  std::vector<int> played;
  for (int r = 0; r < static_cast<int>(alike.size()); ++r) {
    if (alike[r] == r) played.push_back(r);
  }
  return played;
}

void check_microbatch(const layout::Plan& plan, const profile::Profile& profile) {
  if (plan.batch.microbatch == profile.microbatch) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the plan has microbatches of " + std::to_string(plan.batch.microbatch) +
                  " samples, but the profile measured " + std::to_string(profile.microbatch) +
                  "; profile at the plan's size");
}

}  // namespace

std::int64_t Forecast::peak_bytes() const {
  std::int64_t most = 0;
  for (const RankMemory& rank : memory) most = std::max(most, rank.total());
  return most;
}

Forecast forecast(const PriceInputs& inputs, const ForecastOptions& options) {
  const auto& [planned, plan, map, profile, topology] = inputs;
  check_microbatch(plan, profile);
  profile::check_countable(profile, planned, plan.batch.num_microbatches());
  check_places(plan, topology);
  const layout::Role& role = layout::train_role(plan);
  Forecast result;
  result.memory =
      rank_memory(planned, plan, map, stage_tensors(planned, plan, profile), options.memory);
  schedule::ProgramOptions program = options.program;
  if (options.plays_alike_once) {
    const std::vector<int> replicas = alike_replicas(plan, map, topology);
    result.played_by = alike_ranks(plan, replicas);
    program.replicas = played_replicas(replicas);
  }
  result.program = schedule::make_step_program(planned, plan, map, program);
  result.stages = costs_while_holding(stage_costs(planned, plan, profile), profile,
                                      activation_bytes(plan, result.memory));
  const Prices priced =
      prices(result.program, result.stages, inputs, options.memory.gradient_dtype);
  result.simulation = simulate(result.program, priced, topology, result.played_by);
  result.plan_bound_us =
      plan_bound_us(result.stages, plan, topology, layout::crossings(planned, plan));
  result.work_us = recorded_work_us(planned, profile);
  result.any_bound_us = any_plan_bound_us(
      longest_path_us(planned, profile) / largest_speed(role, topology), result.work_us,
      layout::num_microbatches_of_replica(plan), num_processors(role, topology));
  return result;
}

std::vector<RankMemory> expected_memory(const PriceInputs& inputs, const Forecast& forecast,
                                        const MemoryOptions& options) {
  auto messages = expected_messages(forecast.program, forecast.simulation, inputs);
  for (std::size_t rank = 0; rank < forecast.played_by.size(); ++rank) {
    messages[rank] = messages[forecast.played_by[rank]];
  }
  return rank_memory(inputs.planned, inputs.plan, inputs.map,
                     stage_tensors(inputs.planned, inputs.plan, inputs.profile), options,
                     &messages);
}

}  // namespace trireme::simulate
