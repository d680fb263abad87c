#include "trireme/plan/partition/partition.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/bucket_size.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/less_memory.h"
#include "trireme/plan/partition/planner.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::partition {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "partition: " + problem);
}

/// A replica's actions of a step: more are no plan but a mistake in the batch.
constexpr std::int64_t kMostActions = std::int64_t{1} << 23;

std::string count(std::int64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

void check_batch(const PartitionOptions& options, const profile::Profile& profile) {
  const BatchLayout& batch = options.batch;
  if (batch.global_batch < 1 || batch.microbatch < 1 || batch.lanes < 1 || options.replicas < 1) {
    fail("global_batch, microbatch, lanes and replicas must be at least 1");
  }
  if (batch.global_batch % batch.microbatch != 0 || batch.num_microbatches() % batch.lanes != 0 ||
      batch.lanes % options.replicas != 0) {
    fail("replicas (" + std::to_string(options.replicas) + ") must divide the lanes (" +
         std::to_string(batch.lanes) + "), lanes the microbatches, microbatches (of " +
         count(batch.microbatch, "sample") + ") the batch of " +
         std::to_string(batch.global_batch));
  }
  if (batch.microbatch != profile.microbatch) {
    fail("microbatches have " + count(batch.microbatch, "sample") + ", but the profile measured " +
         std::to_string(profile.microbatch) + "; profile at the size that is wanted");
  }
}

int count_stages(const PartitionOptions& options, const topology::Topology& topology) {
  const int num_ranks = static_cast<int>(topology.ranks.size());
  if (options.stages < 0) fail("stages must not be negative");
  const int each = options.stages_per_rank;
  if (each < 1 || options.stages % each != 0) {
    fail(count(options.stages, "stage") + " cannot be dealt out, " + std::to_string(each) +
         " to a rank; ask for a multiple");
  }
  const int positions = options.stages > 0 ? options.stages / each : num_ranks / options.replicas;
  if (positions < 1 || positions > num_ranks / options.replicas) {
    fail(count(std::max(positions, 1) * each, "stage") + " in " +
         count(options.replicas, "replica") + " need " +
         std::to_string(static_cast<std::int64_t>(std::max(positions, 1)) * options.replicas) +
         " ranks, but the topology has " + std::to_string(num_ranks));
  }
  return positions * each;
}

/// Whether a plan may have fewer stages than there are ranks for.
bool may_idle(const PartitionOptions& options) {
  return options.may_idle && options.stages == 0 && options.stages_per_rank == 1;
}

/// Also takes fewer stages where the graph has too few cuts and ranks may stay idle.
void check_cuts(Problem& problem) {
  const std::vector<bool> allowed = graph::allowed_cuts(problem.recorded);
  const auto num_allowed = std::count(allowed.begin(), allowed.end(), true);
  if (num_allowed + 1 < problem.num_stages && may_idle(problem.options)) {
    problem.num_stages = static_cast<int>(num_allowed) + 1;
  }
  if (num_allowed + 1 < problem.num_stages) {
    fail(count(problem.num_stages, "stage") + " need " + count(problem.num_stages - 1, "cut") +
         ", but the graph allows " + std::to_string(num_allowed) + "; ask for at most " +
         count(num_allowed + 1, "stage"));
  }
  const std::vector<int>& cuts = problem.options.cuts;
  if (std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) != cuts.end()) {
    fail("cuts must ascend, each given once");
  }
  if (static_cast<int>(cuts.size()) >= problem.num_stages) {
    fail(count(static_cast<std::int64_t>(cuts.size()), "cut") + " make more than the " +
         count(problem.num_stages, "stage") + " asked for");
  }
  for (const int cut : cuts) {
    const std::string reason = graph::why_forbidden(problem.recorded, cut);
    if (!reason.empty()) fail("no cut may fall at " + std::to_string(cut) + ": " + reason);
  }
}

void check_actions(const Problem& problem) {
  const std::int64_t most = kMostActions / 2 / problem.num_stages;
  if (problem.num_microbatches() <= most) return;
  fail("a batch of " + count(problem.options.batch.global_batch, "sample") + " is " +
       std::to_string(problem.num_microbatches()) + " microbatches of " +
       std::to_string(problem.options.batch.microbatch) + " for each replica; at most " +
       std::to_string(most) + " are planned: give a smaller batch, or profile larger microbatches");
}

Problem make_problem(const graph::Graph& recorded, const profile::Profile& profile,
                     const topology::Topology& topology, const PartitionOptions& options) {
  Problem problem{recorded, profile, topology, options, graph::graph_sha256(recorded)};
  profile::check_same_graph(profile, problem.graph_sha256);
  if (recorded.mode != graph::Mode::kTrain) {
    fail("the graph was recorded in mode eval and has no backward; record it in mode train");
  }
  profile::check(profile, recorded);
  topology::check(topology);
  check_batch(options, profile);
  problem.num_stages = count_stages(options, topology);
  check_actions(problem);
  profile::check_countable(profile, recorded, problem.num_microbatches());
  check_cuts(problem);
  return problem;
}

std::vector<std::int64_t> expected_peaks(const Problem& problem, const Candidate& candidate) {
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  const layout::ParameterMap map = layout::make_parameter_map(planned, candidate.plan);
  std::vector<std::int64_t> peaks;
  for (const simulate::RankMemory& rank :
       simulate::expected_memory({planned, candidate.plan, map, problem.profile, problem.topology},
                                 candidate.forecast, problem.options.forecast.memory)) {
    peaks.push_back(rank.total());
  }
  return peaks;
}

Prediction predict(const Problem& problem, const Candidate& candidate) {
  const simulate::Forecast& forecast = candidate.forecast;
  Prediction prediction;
  prediction.step_ms = forecast.simulation.step_us / 1000;
  prediction.lower_bound_ms = forecast.any_bound_us / 1000;
  for (const simulate::RankMemory& rank : forecast.memory) {
    prediction.peak_bytes.push_back(rank.by_kind());
  }
  prediction.expected_peak_bytes = expected_peaks(problem, candidate);
  prediction.limits = stage_limits(problem, candidate);
  return prediction;
}

}  // namespace

layout::Plan partition(const graph::Graph& recorded, const profile::Profile& profile,
                       const topology::Topology& topology, const PartitionOptions& options) {
  const Problem problem = make_problem(recorded, profile, topology, options);
  Planner planner(problem);
  planner.plan();
  Candidate best = planner.candidate();
  if (options.may_choose_owners) best = with_tie_owners(planner.problem(), std::move(best));
  best = with_less_memory(planner.problem(), std::move(best));
  best = with_bucket_size(planner.problem(), std::move(best));
  if (score(planner.problem(), best, {}).excess_bytes > 0) {
    throw Error(ErrorKind::kResourceExhausted,
                "partition: " + does_not_fit(planner.problem(), best));
  }
  best.plan.threads = profile.threads;
  best.plan.profile_sha256 = profile::profile_sha256(profile);
  best.plan.topology_sha256 = topology::topology_sha256(topology);
  best.plan.prediction = predict(planner.problem(), best);
  return std::move(best.plan);
}

std::vector<int> possible_replicas(const PartitionOptions& options, int num_ranks) {
  if (options.replicas != 0) return {options.replicas};
  std::vector<int> result;
  for (int replicas = 1; replicas <= num_ranks; ++replicas) {
    const bool is_possible = options.forecast.program.tolerant
                                 ? options.batch.lanes % replicas == 0
                                 : schedule::keeps_bits(options.batch, replicas);
    if (num_ranks % replicas != 0 || !is_possible) continue;
    if (replicas > 1 && !options.may_replicate) continue;
    if (options.stages != 0 && options.stages / options.stages_per_rank * replicas != num_ranks) {
      continue;
    }
    result.push_back(replicas);
  }
  return result;
}

namespace {

std::int64_t peak_bytes(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

/// Steps that the objective `memory` may take; with room for rounding between units.
double limit_ms(const PartitionOptions& options) {
  return options.fastest_us * options.max_slowdown / 1000 * (1 + 1e-9);
}

bool is_better_plan(const layout::Plan& plan, const layout::Plan& than, Objective objective) {
  const auto score_of = [objective](const layout::Plan& one) {
    Score score{.primary = one.prediction->step_ms,
                .secondary = static_cast<double>(peak_bytes(one))};
    if (objective == Objective::kMemory) std::swap(score.primary, score.secondary);
    return score;
  };
  return is_better(score_of(plan), score_of(than));
}

/// Why no number of replicas is a candidate: only where the number of stages is given.
std::string no_replicas(const PartitionOptions& options, int num_ranks) {
  const std::string stages =
      std::to_string(options.stages) + (options.stages == 1 ? " stage" : " stages");
  if (options.stages < 1 || num_ranks % options.stages != 0) {
    return stages + " do not divide " + std::to_string(num_ranks) +
           " ranks; give stages that divide the ranks, or --replicas";
  }
  const std::string replicas = std::to_string(num_ranks / options.stages);
  return stages + " on " + std::to_string(num_ranks) + " ranks are " + replicas +
         " replicas, which " + std::to_string(options.batch.lanes) +
         (options.batch.lanes == 1 ? " lane" : " lanes") +
         " cannot be shared among; give --lanes " + replicas + ", or --replicas 1 to use " +
         std::to_string(options.stages) + " ranks";
}

/// The best plan of all numbers of replicas, and what else they said.
struct Tried {
  std::optional<layout::Plan> best;
  std::optional<Error> failure;
};

Tried try_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                   const topology::Topology& topology, PartitionOptions options) {
  const double max_step_ms = options.fastest_us > 0 ? limit_ms(options) : kUnlimited;
  Tried tried;
  for (const int replicas : possible_replicas(options, static_cast<int>(topology.ranks.size()))) {
    options.replicas = replicas;
    try {
      layout::Plan plan = partition(recorded, profile, topology, options);
      if (plan.prediction->step_ms > max_step_ms) continue;
      if (!tried.best || is_better_plan(plan, *tried.best, options.objective)) {
        tried.best = std::move(plan);
      }
    } catch (const Error& error) {
      const bool lacks_memory = error.kind() == ErrorKind::kResourceExhausted;
      if (!tried.failure || lacks_memory) tried.failure = error;
    }
  }
  return tried;
}

/// Ranks that the plan uses x its step.
double cost_of(const layout::Plan& plan) {
  return layout::train_role(plan).mesh.num_ranks() * plan.prediction->step_ms;
}

/// Of the fastest plans of each number of ranks, the one that costs least.
Tried cheapest(const graph::Graph& recorded, const profile::Profile& profile,
               const topology::Topology& topology, PartitionOptions options) {
  options.may_idle = false;
  Tried tried;
  for (const int num_ranks : numbers_down_from(static_cast<int>(topology.ranks.size()))) {
    topology::Topology part = topology;
    part.ranks.resize(num_ranks);
    Tried best = try_replicas(recorded, profile, part, options);
    if (best.failure && !tried.failure) tried.failure = best.failure;
    if (!best.best || (tried.best && cost_of(*best.best) >= cost_of(*tried.best))) continue;
    tried.best = std::move(best.best);
  }
  if (!tried.best) return tried;
  tried.best->objective = "cost";
  tried.best->topology_sha256 = topology::topology_sha256(topology);
  return tried;
}

}  // namespace

layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options) {
  const bool is_cost = options.objective == Objective::kCost;
  if (options.replicas != 0 && !is_cost) return partition(recorded, profile, topology, options);
  PartitionOptions asked = options;
  asked.objective = Objective::kSpeed;
  Tried tried = is_cost ? cheapest(recorded, profile, topology, asked)
                        : try_replicas(recorded, profile, topology, asked);
  if (tried.best && options.objective == Objective::kMemory) {
    asked.objective = Objective::kMemory;
    asked.fastest_us = tried.best->prediction->step_ms * 1000;
    tried = try_replicas(recorded, profile, topology, asked);
  }
  if (tried.best) return *std::move(tried.best);
  if (tried.failure) throw Error(*tried.failure);
  throw Error(ErrorKind::kInvalidArgument,
              "partition: " + no_replicas(options, static_cast<int>(topology.ranks.size())));
}

}  // namespace trireme::partition
