#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/estimate.h"
#include "trireme/plan/partition/fitting_changes.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/partition/planner.h"
#include "trireme/plan/partition/uneven_ranks.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/topology/topology_json.h"

// One number of replicas after another.

namespace trireme::partition {
namespace {

/// Whether so many replicas use all ranks, or leave some that may be left.
bool uses_ranks(const PartitionOptions& options, int replicas, int num_ranks) {
  if (options.stages == 0) return options.may_idle || num_ranks % replicas == 0;
  const auto num_used =
      static_cast<std::int64_t>(options.stages / options.stages_per_rank) * replicas;
  return num_used == num_ranks || (options.may_idle && (num_used < num_ranks || replicas == 1));
}

}  // namespace

std::vector<int> possible_replicas(const PartitionOptions& options, int num_ranks) {
  if (options.replicas != 0) return {options.replicas};
  std::vector<int> result;
  for (int replicas = 1; replicas <= num_ranks; ++replicas) {
    const bool is_possible = options.forecast.program.tolerant
                                 ? options.batch.lanes % replicas == 0
                                 : schedule::keeps_bits(options.batch, replicas);
    if (!is_possible || (replicas > 1 && !options.may_replicate)) continue;
    if (uses_ranks(options, replicas, num_ranks)) result.push_back(replicas);
  }
  return result;
}

namespace {

constexpr double kRounding = 1 + 1e-9;
constexpr int kMostSearched = 8;  ///< Ranks, of which fewer are searched one by one.

std::int64_t peak_bytes(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

/// Steps that the objective `memory` may take; with room for rounding between units.
double limit_ms(const PartitionOptions& options) {
  return options.fastest_us * options.max_slowdown / 1000 * kRounding;
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

/// Whether a rank has room for everything several times over, so that no plan is short of memory: for the whole model, all
/// tensors of all microbatches, and messages of as many bytes.
bool surely_fits_anywhere(const graph::Graph& recorded, const profile::Profile& profile,
                          const topology::Topology& topology, PartitionOptions options) {
  constexpr std::int64_t kTimes =
      6;  // Three for stage and messages; a plan is tight with less than half of the memory left.
  options.replicas = options.stages_per_rank = 1;
  options.shard_state = options.shard_parameters = false;
  options.active_microbatches = 0;
  std::int64_t limit = options.device_memory_bytes;
  for (const topology::RankPlace& rank : topology.ranks) {
    if (options.device_memory_bytes == 0)
      limit = limit == 0 ? rank.memory_bytes : std::min(limit, rank.memory_bytes);
  }
  const Problem problem{recorded, profile, topology, options, graph::graph_sha256(recorded)};
  // All forwards come first: as many microbatches are held as any schedule holds.
  const Setting setting{"simple", {}, recorded};
  return Estimator(problem, setting).surely_fits({}, {limit / kTimes});
}

/// Ranks that the plan uses x its step.
double cost_of(const layout::Plan& plan) {
  return layout::train_role(plan).num_ranks() * plan.prediction->step_ms;
}

/// Without the others, on links too.
topology::Topology first_ranks(topology::Topology topology, int n) {
  topology.ranks.resize(n);
  for (topology::SharedLink& link : topology.shared_links) {
    std::erase_if(link.ranks, [n](int rank) { return rank >= n; });
  }
  std::erase_if(topology.shared_links,
                [](const topology::SharedLink& link) { return link.ranks.empty(); });
  return topology;
}

/// Of the fastest plans of each number of ranks, the one that costs least.
Tried cheapest(const graph::Graph& recorded, const profile::Profile& profile,
               const topology::Topology& topology, PartitionOptions options) {
  options.may_idle = false;
  Tried tried;
  for (const int num_ranks : numbers_down_from(static_cast<int>(topology.ranks.size()))) {
    Tried best = try_replicas(recorded, profile, first_ranks(topology, num_ranks), options);
    if (best.failure && !tried.failure) tried.failure = best.failure;
    if (!best.best || (tried.best && cost_of(*best.best) >= cost_of(*tried.best))) continue;
    tried.best = std::move(best.best);
  }
  if (!tried.best) return tried;
  tried.best->objective = "cost";
  tried.best->topology_sha256 = topology::topology_sha256(topology);
  return tried;
}

/// Whether all else that was asked is right.
bool can_be_joined(const Tried& tried) {
  return tried.best || (tried.failure && tried.failure->kind() == ErrorKind::kResourceExhausted);
}

/// The best plan that a search for all ranks finds.
layout::Plan searched_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
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
  if (options.may_join && can_be_joined(tried)) {
    const double most_us = tried.best ? tried.best->prediction->step_ms * 1000 : kUnlimited;
    if (auto uneven = fastest_uneven(recorded, profile, topology, options, most_us)) {
      return *std::move(uneven);
    }
  }
  if (tried.best) return *std::move(tried.best);
  if (tried.failure) throw Error(*tried.failure);
  throw Error(ErrorKind::kInvalidArgument,
              "partition: " + no_replicas(options, static_cast<int>(topology.ranks.size())));
}

/// Whether the first n ranks may have a faster plan than `best`, and if not, no fewer have. Where stages need not save
/// memory, the search for all ranks has all that one for fewer has; else it depends on what else was found which stages
/// save some. Surely not, where it says no.
bool may_be_faster_on(int n, const graph::Graph& recorded, const profile::Profile& profile,
                      const topology::Topology& topology, const PartitionOptions& options,
                      const std::optional<layout::Plan>& best) {
  const bool may_save = options.recompute == Recompute::kAuto || options.offload == Offload::kAuto;
  const bool may_leave =
      options.may_idle && options.stages == 0 && options.objective == Objective::kSpeed;
  if (!may_save || !may_leave) return false;
  if (!best) return true;
  double work_us = 0, speed = 0;
  for (const profile::NodeTime& time : profile::node_times(profile, recorded)) {
    work_us += time.forward_us + time.backward_us();
  }
  for (int r = 0; r < n; ++r) speed += topology.ranks[r].speed;
  const auto m = static_cast<double>(options.batch.num_microbatches());
  if (m * work_us / speed > best->prediction->step_ms * 1000 * kRounding) return false;
  return !surely_fits_anywhere(recorded, profile, topology, options);
}

/// As `partition_over_replicas`, without advice where nothing fits.
layout::Plan best_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                const topology::Topology& topology,
                                const PartitionOptions& options) {
  std::optional<layout::Plan> best;
  std::optional<Error> failure;
  try {
    best = searched_over_replicas(recorded, profile, topology, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kResourceExhausted) throw;
    failure = error;
  }
  PartitionOptions even = options;
  even.may_join = false;  // That search has tried fewer ranks.
  const auto num_ranks = static_cast<int>(topology.ranks.size());
  for (int n = num_ranks - 1; n > 0 && num_ranks <= kMostSearched; --n) {
    if (!may_be_faster_on(n, recorded, profile, topology, options, best)) break;
    try {
      layout::Plan plan = searched_over_replicas(recorded, profile, first_ranks(topology, n), even);
      if (best && !is_better_plan(plan, *best, options.objective)) continue;
      plan.topology_sha256 = topology::topology_sha256(topology);
      best = std::move(plan);
    } catch (const Error&) {
      // What was asked was judged by the search for all ranks; of fewer it may ask too much.
    }
  }
  if (!best) throw Error(*failure);
  return *std::move(best);
}

}  // namespace

layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options) {
  try {
    return best_over_replicas(recorded, profile, topology, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kResourceExhausted) throw;
    const FindPlan find_plan = [&](const topology::Topology& ranks,
                                   const PartitionOptions& changed) -> std::optional<layout::Plan> {
      try {
        PartitionOptions even = changed;
        even.may_join = false;
        return searched_over_replicas(recorded, profile, ranks, even);
      } catch (const Error&) {
        return std::nullopt;
      }
    };
    throw Error(
        ErrorKind::kResourceExhausted,
        error.message() + "\n" + show(fitting_changes(profile, topology, options, find_plan)));
  }
}

}  // namespace trireme::partition
