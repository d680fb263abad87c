#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan/graph/argument.h"

namespace trireme::layout {

/// What decides results: a step's batch and how it is folded (docs/concepts/equality.md).
struct BatchLayout {
  std::int64_t global_batch = 0;  ///< B, samples per step.
  std::int64_t microbatch = 0;    ///< b, samples per microbatch; divides B.
  std::int64_t lanes = 1;         ///< G, data lanes; divides B / b.

  std::int64_t num_microbatches() const { return global_batch / microbatch; }
  std::int64_t microbatches_per_lane() const { return num_microbatches() / lanes; }
  bool operator==(const BatchLayout&) const = default;
};

/// Named mesh of the ranks of a role: their product is their number.
struct Mesh {
  int pipeline = 1;
  int data = 1;
  int shard = 1;
  int num_ranks() const { return pipeline * data * shard; }
  bool operator==(const Mesh&) const = default;
};

/// Ranks that do one job; `train` is the only role so far.
struct Role {
  std::string name = "train";
  Mesh mesh;
  std::vector<int> placement;  ///< Rank at each mesh position: pipeline slowest, shard fastest.
  bool operator==(const Role&) const = default;
};

/// Nodes at positions [begin, end) of the graph's execution order.
struct Stage {
  int begin = 0;
  int end = 0;
  std::vector<graph::NodeId> copies;  ///< Earlier nodes run again here instead of sending values.
  std::vector<graph::NodeId> recompute;  ///< Nodes whose outputs are recomputed for the backward.
  std::vector<graph::NodeId> offload;    ///< Nodes whose saved tensors move to host memory.
  bool operator==(const Stage&) const = default;
};

struct ScheduleChoice {
  std::string name = "simple";
  std::map<std::string, std::int64_t> parameters;
  bool operator==(const ScheduleChoice&) const = default;
};

/// The stage that keeps a parameter used in several stages; the others mirror it.
struct TieOwner {
  std::string parameter;
  int stage = 0;
  bool operator==(const TieOwner&) const = default;
};

/// Peak memory of each rank, by kind.
using PeakBytes = std::vector<std::map<std::string, std::int64_t>>;

/// What the planner expects; absent in a plan cut by hand without a profile.
struct Prediction {
  double step_ms = 0;
  double lower_bound_ms = 0;
  PeakBytes peak_bytes;
  std::vector<std::string> limits;  ///< Per stage, what limits it.
  bool operator==(const Prediction&) const = default;
};

/// The decision how a graph is trained; everything a run needs beside the graph and the model.
struct Plan {
  std::string graph_sha256;
  std::optional<std::string> profile_sha256;
  std::optional<std::string> topology_sha256;
  std::string objective = "manual";  ///< `speed`, `memory` or `manual`.
  BatchLayout batch;
  std::vector<Role> roles;
  /// Recorded nodes that are run once per consuming node (graph::copy_to_consumers), so that no cut
  /// between consumers sends their values. Positions below count in the graph after that.
  std::vector<graph::NodeId> copied_nodes;
  std::vector<Stage> stages;
  ScheduleChoice schedule;
  std::vector<TieOwner> tie_owners;
  std::optional<Prediction> prediction;

  bool operator==(const Plan&) const = default;
};

}  // namespace trireme::layout
