#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/cut_rules.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// What is asked of `partition`.
struct PartitionOptions {
  // What decides results and what is given.
  BatchLayout batch;
  int replicas = 1;
  bool may_replicate = true;  ///< Whether `replicas` of 0 may become several.
  bool may_copy = true;  ///< Whether nodes with parameters may run once per consumer: other bits.
  bool may_reorder =
      true;  ///< Whether nodes may run in another order than the recorded one: the same bits.
  /// Exactly these, as the run had that goes on; not set: as `may_copy` says.
  std::optional<std::vector<graph::NodeId>> copied_nodes;
  std::vector<int>
      cuts;          ///< Stages must begin at these positions of the recorded graph; ascending.
  StageOf stage_of;  ///< Nodes by name, module or pattern, and their stages.
  Balance balance = Balance::kSearch;  ///< Another has no `cuts` and `stage_of`.

  // What decides speed and memory.
  Objective objective = Objective::kSpeed;
  bool may_choose_owners = true;  ///< Of shared parameters; else the first stage that uses one.
  Placement placement = Placement::kSpread;
  int stages = 0;         ///< 0: on all ranks of the topology over `replicas`, or fewer:
  bool may_idle = false;  ///< whether ranks may be left without a stage where that is better.
  /// Whether positions of the pipeline may have different numbers of ranks (uneven_ranks.h), where `replicas` is 0 and the
  /// objective kSpeed.
  bool may_join = false;
  std::string schedule;         ///< Empty: the best of all that can have as many stages on a rank.
  int active_microbatches = 0;  ///< That a rank may hold at once; 0: any number.
  Recompute recompute = Recompute::kAuto;
  Offload offload = Offload::kNone;
  bool shard_state = false;              ///< Replicas share the optimizer's state.
  bool shard_parameters = false;         ///< And values and gradients; with shard_state.
  int stages_per_rank = 1;               ///< Where they stand says the schedule.
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: what the topology says.
  double max_slowdown = 1.25;            ///< Of kMemory: against the fastest plan.
  double fastest_us = 0;                 ///< Its step, where it is known; 0: with these options.
  double effort = 1;                     ///< Part of what a search may spend.
  simulate::ForecastOptions forecast;    ///< State per element, norm clipping.
};

/// The plan that trains `recorded` best on `topology`: stages, schedule, copies, prediction.
///
/// For each schedule, each order of nodes and each group of copied nodes that may pay, cuts are searched (search.h),
/// judged by an estimate that equals the simulator's forecast where the topology has no shared links: those are in the
/// forecast of the plan alone. Deterministic: the same inputs give the same bytes.
///
/// recorded   as it was recorded; passes graph::check.
/// profile    of this graph, at the batch's microbatch size.
/// topology   has at least stages / stages_per_rank x replicas ranks; the first of them are used, in an order that
///            suits them where they differ (rank_orders.h).
/// Returns    a plan that passes layout::check and names its graph, profile and topology.
/// Errors     kInvalidArgument where these do not fit each other or the graph has too few allowed
///            cuts, of `check_stage_of`, and where no schedule does with as few active microbatches;
///            kResourceExhausted where no plan fits into the memory, saying by how much, on which stages, and what takes it.
/// Cost       2 n^2 / p steps of the DP, then an estimate for each move of a cut, limited in number:
///            1,000 nodes in 64 stages some 2 s, 10,000 some 10 s.
layout::Plan partition(const graph::Graph& recorded, const profile::Profile& profile,
                       const topology::Topology& topology, const PartitionOptions& options);

/// The best plan of `partition` over the numbers of replicas for which results are the same bits
/// (docs/concepts/equality.md): 1, and those with lanes / replicas a power of two, that divide
/// the ranks or, where ranks may stay idle, leave some.
///
/// Where `may_join`, plans whose positions have different numbers of ranks too, if they are faster (uneven_ranks.h).
///
/// Where ranks may stay idle, whatever fewer ranks could have is considered: one rank more, after the same others, never
/// gives a longer step, but for steps of more than 8 stages, whose search ends early. Where stages may have to save memory,
/// that is so because fewer ranks are planned for too, of 8 at most, unless no plan for them can be faster.
///
/// options    as for `partition`; `replicas` 0 asks for this search, another number is taken as it
///            is.
/// topology   all of its ranks are used, but where some may stay idle; where the objective is kCost, the fastest plans of
///            fewer are tried too.
/// Errors     those of `partition` where no number gives a plan: of the last that failed for lack of
///            memory, with what would help (fitting_changes.h), else of the first.
layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options);

/// Numbers of replicas that `partition_over_replicas` tries on so many ranks, ascending.
std::vector<int> possible_replicas(const PartitionOptions& options, int num_ranks);

}  // namespace trireme::partition
