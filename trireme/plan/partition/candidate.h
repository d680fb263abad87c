#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/action.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// What is to be planned. What it refers to must outlive it.
struct Problem {
  const graph::Graph& recorded;
  const profile::Profile& profile;
  const topology::Topology& topology;
  const PartitionOptions& options;
  std::string graph_sha256;
  int num_stages = 1;
  std::vector<int> positions = {};  ///< By stage: in the pipeline; empty: each its own, in order.
  /// World ranks in the places of 0, 1, ... of `Placement`; empty: each its own (rank_orders.h).
  std::vector<int> order = {};
  /// As in a role: ranks by position and replica, some with several (uneven_ranks.h); empty: as `order` and options say.
  std::vector<int> placement = {};

  int position(int stage) const { return positions.empty() ? stage : positions[stage]; }
  int num_positions() const { return num_stages / options.stages_per_rank; }
  std::int64_t num_microbatches() const {
    return options.batch.num_microbatches() / options.replicas;
  }
  /// World rank of a stage of a replica.
  int rank(int stage, int replica) const { return rank_at(position(stage), replica); }
  int rank_at(int position, int replica) const {
    if (!placement.empty()) return placement[position * options.replicas + replica];
    const int place = options.placement == Placement::kSpread
                          ? position * options.replicas + replica
                          : replica * num_positions() + position;
    return order.empty() ? place : order[place];
  }
  /// Of the replica that runs a stage most slowly, or fastest.
  double least_speed(int stage) const;
  double most_speed(int stage) const;
  /// Whether estimates know such plans; else each is forecast as a whole.
  bool is_estimated() const {
    return options.stages_per_rank == 1 && !options.shard_state && placement.empty();
  }
  /// What every rank of a stage may use.
  std::int64_t memory_limit(int stage) const;
  /// The slowest kind of link between ranks of two stages.
  profile::LinkKind link_kind(int from_stage, int to_stage) const;
};

/// A plan and what it would do.
struct Candidate {
  layout::Plan plan;
  simulate::Forecast forecast;
};

/// Less is better, field by field.
struct Score {
  std::int64_t excess_bytes = 0;  ///< Over the limit of the stage that exceeds its own most.
  double excess_us = 0;           ///< Over the step that is allowed.
  double primary = 0;
  double secondary = 0;
  auto operator<=>(const Score&) const = default;
};

/// Whether `one` is less by more than rounding: of primaries that are the same but for that, the secondaries decide.
bool is_better(const Score& one, const Score& other);

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// What a search is after.
struct Goal {
  Objective objective = Objective::kSpeed;
  double max_step_us = kUnlimited;

  /// Of a step over that, but for rounding.
  double excess_us(double step_us) const {
    constexpr double kRounding = 1 + 1e-9;  // Sums in another order.
    return step_us > max_step_us * kRounding ? step_us - max_step_us : 0;
  }
};

Score score(const Problem& problem, const Candidate& candidate, const Goal& goal);

/// Bytes by which a stage exceeds its limit; negative where it does not.
std::int64_t excess_bytes(const Problem& problem, const Candidate& candidate, int stage);

/// Of all positions of the pipeline, what their ranks exceed their memory by.
std::int64_t total_excess(const Problem& problem, const Candidate& candidate);

/// Schedule and graph passes of a plan; the rest of it are cuts.
struct Setting {
  std::string schedule;
  std::vector<graph::NodeId> copied_nodes;
  const graph::Graph& planned;  ///< After the passes; must outlive this.
  std::vector<graph::NodeId> node_order = {};
};

/// The schedule's name, and how many microbatches may be active where the options say.
layout::ScheduleChoice schedule_choice(const PartitionOptions& options, const std::string& name);

schedule::Schedule make_schedule(const Problem& problem, const Setting& setting);

/// The plan with these cuts, and stage copies where they pay (stage_copies.h).
layout::Plan plan_of(const Problem& problem, const Setting& setting, const std::vector<int>& cuts);

/// The same and its forecast.
Candidate evaluate(const Problem& problem, const Setting& setting, const std::vector<int>& cuts);

/// The plan, whose graph is `planned`, and its forecast.
Candidate forecast_of(const Problem& problem, const graph::Graph& planned, layout::Plan plan);

/// The candidate with shared parameters owned by the stage with the most room among those that use
/// them, where the objective's score is better: the owner has the optimizer's state, updates, and
/// sends the value to the others. Else the first of them owns. Changes no bits.
///
/// Cost   a forecast for each of the largest 8 shared parameters.
Candidate with_tie_owners(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
