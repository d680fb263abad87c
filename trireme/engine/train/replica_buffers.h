#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::train {

/// Names of the buffers that the forward writes and that replicas cannot combine by themselves.
std::vector<std::string> written_buffers(const graph::Graph& graph);

/// Why there can be one replica only, and what to do; empty where there may be several: every buffer
/// of `written_buffers` has a policy, and no parameter is written.
std::string why_one_replica(const graph::Graph& graph, const ReplicaPolicies& policies);

/// Refuses policies that do not fit the graph: of a buffer that needs none, of one whose dtype has
/// no such operation, of two that share memory; several replicas where `why_one_replica`; and ranks that run several
/// where there are policies: their forwards would write one buffer in turn.
///
/// Errors   kInvalidArgument with the buffer and what to do.
void check_buffers(const graph::Graph& graph, const ReplicaPolicies& policies,
                   const layout::Role& role);

/// Buffers that a rank's forwards write, brought together over the replicas at the end of a step,
/// as the user's policies say. Afterwards every replica holds the same.
///
/// Confined to the thread that runs the step.
class ReplicaBuffers {
 public:
  using Wait = std::function<void(transport::Work& work, const char* what)>;

  /// recording   outlives this. Its graph and the policies passed check_buffers.
  ///
  /// stages      of the rank.
  ReplicaBuffers(const record::Recording& recording, const layout::Plan& plan,
                 const std::vector<int>& stages, const ReplicaPolicies& policies);

  /// Remembers what changes are counted from.
  void begin_step();

  /// All replicas of the rank call it. Blocks, in `wait`.
  void combine(collectives::Group& replicas, const Wait& wait) const;

 private:
  struct Written {
    at::Tensor tensor;
    ReplicaPolicy policy;
    at::Tensor before;  ///< Of kSum: the value at the step's beginning.
  };
  std::vector<Written> buffers_;
};

/// Batch statistics of a replica: [microbatch], in node order; the same nodes in each.
using Statistics = std::vector<std::vector<program::NormStatistics>>;

bool has_statistics(const Statistics& statistics);

/// One after the other, means and variances as they lie in memory.
std::vector<std::byte> to_bytes(const Statistics& statistics);

/// The statistics of `num_replicas`, in global microbatch order, from their bytes.
///
/// like   those of one replica: the nodes, shapes and dtypes of all.
Statistics from_bytes(std::span<const std::byte> bytes, const Statistics& like, int num_replicas);

}  // namespace trireme::train
