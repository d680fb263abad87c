#include "trireme/plan/partition/replicas.h"

#include <optional>
#include <utility>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/plan/layout/peak.h"
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
    if (options.stages != 0 && options.stages * replicas != num_ranks) continue;
    result.push_back(replicas);
  }
  return result;
}

std::int64_t peak_bytes(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
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
    return stages + " cannot be laid over " + std::to_string(num_ranks) +
           " ranks; give stages that divide the ranks, or --replicas";
  }
  const std::string replicas = std::to_string(num_ranks / options.stages);
  return stages + " on " + std::to_string(num_ranks) + " ranks are " + replicas +
         " replicas, which " + std::to_string(options.batch.lanes) +
         (options.batch.lanes == 1 ? " lane" : " lanes") +
         " cannot be shared among; give --lanes " + replicas + ", or --replicas 1 to use " +
         std::to_string(options.stages) + " ranks";
}

}  // namespace

layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options) {
  if (options.replicas != 0) return partition(recorded, profile, topology, options);
  const int num_ranks = static_cast<int>(topology.ranks.size());
  std::optional<layout::Plan> best;
  std::optional<Error> failure;
  for (const int replicas : candidates(options, num_ranks)) {
    PartitionOptions tried = options;
    tried.replicas = replicas;
    try {
      layout::Plan plan = partition(recorded, profile, topology, tried);
      if (!best || is_better(plan, *best, options.objective)) best = std::move(plan);
    } catch (const Error& error) {
      if (!failure || error.kind() == ErrorKind::kResourceExhausted) failure = error;
    }
  }
  if (best) return *std::move(best);
  if (failure) throw Error(*failure);
  throw Error(ErrorKind::kInvalidArgument, "partition: " + no_replicas(options, num_ranks));
}

}  // namespace trireme::partition
