#include "trireme/plan/partition/partition.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/finished_plan.h"
#include "trireme/plan/partition/planner.h"
#include "trireme/plan/profile/profile_json.h"

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
bool may_leave_ranks(const PartitionOptions& options) {
  return options.may_idle && options.stages == 0;
}

/// Also takes fewer stages where the graph has too few cuts and ranks may stay idle.
void check_cuts(Problem& problem) {
  const std::vector<bool> allowed = graph::allowed_cuts(problem.recorded);
  const auto num_allowed = std::count(allowed.begin(), allowed.end(), true);
  const int each = problem.options.stages_per_rank;
  const bool has_cuts_for_one = num_allowed + 1 >= each;
  if (num_allowed + 1 < problem.num_stages && has_cuts_for_one &&
      may_leave_ranks(problem.options)) {
    problem.num_stages = static_cast<int>(num_allowed + 1) / each * each;
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

void check_rules(const Problem& problem) {
  const PartitionOptions& options = problem.options;
  check_stage_of(problem.recorded, options.stage_of, problem.num_stages);
  const bool has_rules = !options.cuts.empty() || !options.stage_of.empty();
  if (options.balance == Balance::kSearch || !has_rules) return;
  fail("the balance " + std::string(layout::balance_name(options.balance)) +
       " says where all cuts fall; leave out --cut-at and --stage-of, or --balance");
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
  if (options.active_microbatches < 0) fail("active_microbatches must not be negative");
  problem.num_stages = count_stages(options, topology);
  check_actions(problem);
  profile::check_countable(profile, recorded, problem.num_microbatches());
  check_cuts(problem);
  check_rules(problem);
  return problem;
}

/// The best of the planner's proposals once they are finished.
Planner::Proposal best_of(const Planner& planner) {
  std::vector<Planner::Proposal> proposals = planner.proposals();
  const bool is_speed = planner.goal().objective == Objective::kSpeed;
  std::size_t best = 0;
  Score least;
  double most_us = kUnlimited;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    Planner::Proposal& one = proposals[i];
    one.candidate = finished(one.problem, std::move(one.candidate), most_us);
    const Score now = score(one.problem, one.candidate, planner.goal());
    if (i > 0 && !is_better(now, least)) continue;
    best = i;
    least = now;
    if (is_speed && now.excess_bytes <= 0) most_us = now.primary;
  }
  return std::move(proposals[best]);
}

}  // namespace

layout::Plan partition(const graph::Graph& recorded, const profile::Profile& profile,
                       const topology::Topology& topology, const PartitionOptions& options) {
  const Problem problem = make_problem(recorded, profile, topology, options);
  Planner planner(problem);
  planner.plan();
  auto [chosen, best] = best_of(planner);
  if (score(chosen, best, {}).excess_bytes > 0) {
    throw Error(ErrorKind::kResourceExhausted, "partition: " + does_not_fit(chosen, best));
  }
  return finished_plan(chosen, std::move(best));
}

}  // namespace trireme::partition
