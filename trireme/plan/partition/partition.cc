#include "trireme/plan/partition/partition.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/plan/graph/copies.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/partition/copies.h"
#include "trireme/plan/partition/limits.h"
#include "trireme/plan/partition/search.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/topology/json.h"

namespace trireme::partition {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "partition: " + problem);
}

std::string count(std::int64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

void check_batch(const PartitionOptions& options, const profile::Profile& profile) {
  const layout::BatchLayout& batch = options.batch;
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
  const int stages = options.stages > 0 ? options.stages : num_ranks / options.replicas;
  if (stages < 1 || stages > num_ranks / options.replicas) {
    fail(count(stages, "stage") + " in " + count(options.replicas, "replica") + " need " +
         std::to_string(static_cast<std::int64_t>(std::max(stages, 1)) * options.replicas) +
         " ranks, but the topology has " + std::to_string(num_ranks));
  }
  return stages;
}

void check_cuts(const Problem& problem) {
  const std::vector<bool> allowed = graph::allowed_cuts(problem.recorded);
  const auto num_allowed = std::count(allowed.begin(), allowed.end(), true);
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

Problem make_problem(const graph::Graph& recorded, const profile::Profile& profile,
                     const topology::Topology& topology, const PartitionOptions& options) {
  Problem problem{recorded, profile, topology, options, graph::graph_sha256(recorded)};
  if (profile.graph_sha256 != problem.graph_sha256) {
    fail("the profile is of another graph: it names " + profile.graph_sha256.substr(0, 64) +
         ", but this one is " + problem.graph_sha256 + "; profile this graph");
  }
  profile::check(profile, recorded);
  topology::check(topology);
  check_batch(options, profile);
  problem.num_stages = count_stages(options, topology);
  check_cuts(problem);
  return problem;
}

/// The best over schedules and groups of copied nodes.
class Planner {
 public:
  explicit Planner(const Problem& problem) : problem_(problem) {
    schedules_ = problem.options.schedule.empty()
                     ? schedule::schedule_names()
                     : std::vector<std::string>{problem.options.schedule};
  }

  Candidate plan() {
    const Goal speed;
    search(speed);
    if (problem_.options.objective == Objective::kMemory && fits()) {
      search(
          {Objective::kMemory, best_->forecast.simulation.step_us * problem_.options.max_slowdown});
    }
    return *std::move(best_);
  }

 private:
  bool fits() const { return score(problem_, *best_, {}).excess_bytes == 0; }

  void search(const Goal& goal) {
    const auto& pinned = problem_.options.copied_nodes;
    for (const std::string& schedule : schedules_) {
      try_setting(schedule, pinned.value_or(std::vector<graph::NodeId>()), goal);
    }
    if (pinned) return;
    if (problem_.num_stages == 1 || !problem_.options.cuts.empty()) return;
    if (!problem_.options.may_copy) return;
    for (const auto& nodes : copy_candidates(problem_.recorded, problem_.profile)) {
      std::vector<graph::NodeId> copied = best_->plan.copied_nodes;
      copied.insert(copied.end(), nodes.begin(), nodes.end());
      std::sort(copied.begin(), copied.end());
      copied.erase(std::unique(copied.begin(), copied.end()), copied.end());
      if (copied != best_->plan.copied_nodes && can_copy(problem_.recorded, copied)) {
        try_setting(best_->plan.schedule.name, std::move(copied), goal);
      }
    }
  }

  void try_setting(const std::string& schedule, std::vector<graph::NodeId> copied,
                   const Goal& goal) {
    Setting setting{schedule, std::move(copied), {}};
    setting.planned = setting.copied_nodes.empty()
                          ? problem_.recorded
                          : graph::copy_to_consumers(problem_.recorded, setting.copied_nodes);
    std::optional<Candidate> found = Search(problem_, setting).find(goal);
    if (!found) return;
    if (!best_ || score(problem_, *found, goal) < score(problem_, *best_, goal)) {
      best_ = std::move(found);
    }
  }

  const Problem& problem_;
  std::vector<std::string> schedules_;
  std::optional<Candidate> best_;
};

layout::Prediction predict(const Problem& problem, const Candidate& candidate) {
  const simulate::Forecast& forecast = candidate.forecast;
  layout::Prediction prediction;
  prediction.step_ms = forecast.simulation.step_us / 1000;
  prediction.lower_bound_ms = forecast.any_bound_us / 1000;
  for (const simulate::RankMemory& rank : forecast.memory) {
    prediction.peak_bytes.push_back(rank.by_kind());
  }
  prediction.limits = stage_limits(problem, candidate);
  return prediction;
}

}  // namespace

layout::Plan partition(const graph::Graph& recorded, const profile::Profile& profile,
                       const topology::Topology& topology, const PartitionOptions& options) {
  const Problem problem = make_problem(recorded, profile, topology, options);
  Candidate best = Planner(problem).plan();
  if (score(problem, best, {}).excess_bytes > 0) {
    throw Error(ErrorKind::kResourceExhausted, "partition: " + does_not_fit(problem, best));
  }
  best.plan.profile_sha256 = profile::profile_sha256(profile);
  best.plan.topology_sha256 = topology::topology_sha256(topology);
  best.plan.prediction = predict(problem, best);
  return std::move(best.plan);
}

}  // namespace trireme::partition
