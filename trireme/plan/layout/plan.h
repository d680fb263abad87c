#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::layout {

/// Named mesh of the places of a role. Each has a rank; a rank may have those of several replicas.
struct Mesh {
  int pipeline = 1;
  int data = 1;
  int shard = 1;
  int num_places() const { return pipeline * data * shard; }
  bool operator==(const Mesh&) const = default;
};

/// Ranks that do one job; `train` is the only role so far.
struct Role {
  std::string name = "train";
  Mesh mesh;
  /// Rank at each mesh position: pipeline slowest, shard fastest. A rank that runs several replicas of its position
  /// stands there once for each, one behind the other: `0 1 2 2` are two ranks for the first stage, one for the second.
  std::vector<int> placement;
  bool operator==(const Role&) const = default;

  int num_ranks() const;  ///< Those of the placement, each once.

  /// Ranks at a position of the pipeline, each once, in the order of their replicas.
  std::vector<int> ranks_at(int position) const;

  /// Replicas that each rank at the position runs; of a role that passes its check. Cost: number of replicas.
  int replicas_per_rank(int position) const;

  /// Whether each rank runs one replica.
  bool is_even() const { return num_ranks() == mesh.num_places(); }
};

/// Nodes at positions [begin, end) of the graph's execution order.
struct Stage {
  int begin = 0;
  int end = 0;
  std::vector<graph::NodeId> copies;  ///< Earlier nodes run again here instead of sending values.
  bool recompute = false;  ///< Its forward runs again for each backward, from what it received.
  bool offload = false;    ///< What microbatches keep for their backwards is in a file meanwhile.
  std::optional<int> position = {};  ///< In the pipeline, whose rank runs it; not set: its index.
  /// Of one that recomputes: positions at which its regions begin, but for the first. Each is run again by itself.
  std::vector<int> regions = {};
  bool operator==(const Stage&) const = default;
};

/// Name of a schedule that the plan itself spells out.
inline constexpr std::string_view kCustomSchedule = "custom";

struct ScheduleChoice {
  std::string name = "simple";
  std::map<std::string, std::int64_t> parameters;
  /// Of `custom`: by position of the pipeline, texts of schedule::Action.
  std::vector<std::vector<std::string>> actions = {};
  bool operator==(const ScheduleChoice&) const = default;
};

/// The stage that keeps a parameter used in several stages; the others mirror it.
struct TieOwner {
  std::string parameter;
  int stage = 0;
  bool operator==(const TieOwner&) const = default;
};

inline constexpr std::int64_t kUsualBucketBytes = 25 << 20;

/// The decision how a graph is trained; everything a run needs beside the graph and the model.
struct Plan {
  std::string graph_sha256;
  std::optional<std::string> profile_sha256;
  std::optional<std::string> topology_sha256;
  std::string objective = "manual";    ///< `speed`, `memory`, `cost` or `manual`.
  Balance balance = Balance::kSearch;  ///< What decided where stages begin, if not a person.
  BatchLayout batch;
  int threads = 1;  ///< That each rank computes with; results depend on it.
  std::vector<Role> roles;
  /// Ids of all recorded nodes in the order in which they run (graph::reordered), which gives the same bits; empty: as
  /// they were recorded. Copies are made after that.
  std::vector<graph::NodeId> node_order;
  /// Recorded nodes that are run once per consuming node (graph::copy_to_consumers), so that no cut
  /// between consumers sends their values. Positions below count in the graph after that.
  std::vector<graph::NodeId> copied_nodes;
  std::vector<Stage> stages;
  ScheduleChoice schedule;
  std::vector<TieOwner> tie_owners;
  /// Gradients are summed over replicas in buckets, each closed once it holds this much. Decides speed alone.
  std::int64_t bucket_bytes = kUsualBucketBytes;
  /// Each replica keeps the optimizer's state of its part of the parameters (Bucket::shards), and updates that.
  bool sharded_state = false;
  /// And their values and gradients (`sharded_buckets`): a stage's are whole around its actions (schedule/whole_stages.h).
  bool sharded_parameters = false;
  std::optional<Prediction> prediction;

  bool operator==(const Plan&) const = default;
};

/// `search`, `uniform`, `parameters`, `tree`.
std::string_view balance_name(Balance balance);

/// The stage that runs the node at `position`. kInvalidArgument where none does.
int stage_of(const Plan& plan, int position);

/// The role `train`. kInvalidArgument where the plan has none.
const Role& train_role(const Plan& plan);

/// The position in the pipeline at which a stage runs; several stages may share one.
int position_of(const Plan& plan, int stage);

/// The stages at a position of the pipeline, ascending.
std::vector<int> stages_at(const Plan& plan, int position);

/// World rank that runs a stage for a replica.
int rank_of(const Plan& plan, int stage, int replica);

/// Microbatches of a step that each replica runs.
int num_microbatches_of_replica(const Plan& plan);

/// The graph whose positions the stages of `plan` count: the recorded one in the order of `plan.node_order`, then after the
/// copies of `plan.copied_nodes`.
///
/// Errors   those of graph::reordered and graph::copy_to_consumers.
graph::Graph planned_graph(const graph::Graph& recorded, const Plan& plan);

/// Likewise of a plan with this order, empty for the recorded one, and these copies.
graph::Graph planned_graph(const graph::Graph& recorded, std::span<const graph::NodeId> node_order,
                           std::span<const graph::NodeId> copied_nodes);

/// All kinds together, of the rank that has most; 0 where there is none. A sum that a 64-bit number
/// does not hold is its largest.
std::int64_t largest_peak_bytes(const PeakBytes& peak_bytes);

}  // namespace trireme::layout
