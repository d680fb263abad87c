#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/command/verbs.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/plan/partition/options.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::command {

/// What a model costs on a machine.
struct Measurement {
  profile::Profile profile;  ///< The same on all ranks.
  topology::Topology topology;
};

struct MeasureOptions {
  std::int64_t microbatch = 8;
  std::int64_t device_memory_bytes = 0;  ///< 0: an equal part of the host's.
  std::uint64_t seed = 0;
  train::OptimizerOptions optimizer;
};

/// Measures a model, all ranks of the world at once. Every rank calls it. The workload is not for
/// training after that: weights and buffers may have changed.
///
/// recorded   of the workload's model in train mode.
/// world      null where there is only this process.
Measurement measure(const Workload& workload, const record::Recording& recorded,
                    const MeasureOptions& options, const collectives::World* world);

/// What is asked of a plan that a profile decides.
struct DecideOptions {
  std::string objective = "speed";       ///< Or `memory`.
  double max_slowdown = 1.25;            ///< partition::PartitionOptions
  std::int64_t device_memory_bytes = 0;  ///< 0: what the topology says.
  train::OptimizerOptions optimizer;
  bool tolerant = false;           ///< schedule::ProgramOptions
  train::ReplicaPolicies buffers;  ///< Without one that it needs, a model has one replica.
  // partition::PartitionOptions
  bool may_idle = false;
  bool may_copy = true;
  std::optional<std::vector<graph::NodeId>> copied_nodes;
};

/// A plan, and what is said about it.
struct Decision {
  layout::Plan plan;
  std::string text;
};

/// The best plan of the measurement within what `wanted` says: batch, stages, replicas (0: the
/// best), schedule, cuts; the microbatch is the profile's.
///
/// Errors   those of partition::partition and train::check_buffers.
Decision decide(const graph::Graph& graph, const Measurement& measurement,
                const PlanOptions& wanted, const DecideOptions& options);

}  // namespace trireme::command
