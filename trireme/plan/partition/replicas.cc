#include "trireme/plan/partition/replicas.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/layout/peak.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::partition {
namespace {

std::vector<int> candidates(const PartitionOptions& options, int num_ranks) {
  std::vector<int> result;
  for (int replicas = 1; replicas <= num_ranks; ++replicas) {
    const bool is_possible = options.forecast.program.tolerant
                                 ? options.batch.lanes % replicas == 0
                                 : schedule::keeps_bits(options.batch, replicas);
    if (num_ranks % replicas != 0 || !is_possible) continue;
    if (replicas > 1 && !options.may_replicate) continue;
    if (options.stages != 0 && options.stages * replicas != num_ranks) continue;
    result.push_back(replicas);
  }
  return result;
}

std::int64_t peak_bytes(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

/// Steps that the objective `memory` may take; with room for rounding between units.
double limit_ms(const PartitionOptions& options) {
  return options.fastest_us * options.max_slowdown / 1000 * (1 + 1e-9);
}

bool is_better(const layout::Plan& plan, const layout::Plan& than, Objective objective) {
  if (objective == Objective::kMemory && peak_bytes(plan) != peak_bytes(than)) {
    return peak_bytes(plan) < peak_bytes(than);
  }
  return plan.prediction->step_ms < than.prediction->step_ms;
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
  for (const int replicas : candidates(options, static_cast<int>(topology.ranks.size()))) {
    options.replicas = replicas;
    try {
      layout::Plan plan = partition(recorded, profile, topology, options);
      if (plan.prediction->step_ms > max_step_ms) continue;
      if (!tried.best || is_better(plan, *tried.best, options.objective)) {
        tried.best = std::move(plan);
      }
    } catch (const Error& error) {
      const bool lacks_memory = error.kind() == ErrorKind::kResourceExhausted;
      if (!tried.failure || lacks_memory) tried.failure = error;
    }
  }
  return tried;
}

}  // namespace

layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options) {
  if (options.replicas != 0) return partition(recorded, profile, topology, options);
  PartitionOptions asked = options;
  asked.objective = Objective::kSpeed;
  Tried tried = try_replicas(recorded, profile, topology, asked);
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
