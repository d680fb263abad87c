#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/engine/record/recording.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/what_if.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/stragglers.h"
#include "trireme/session.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

struct MeasuredCosts {
  Profile profile;
  Topology topology;
};

/// Measures a model, all ranks of the world at once. Every rank calls it. The workload is not for
/// training after that: weights and buffers may have changed.
///
/// recorded   of the workload's model in train mode.
/// world      null where there is only this process.
MeasuredCosts measure_recorded(const Workload& workload, const record::Recording& recorded,
                               const MeasureOptions& options, const collectives::World* world);

/// Plan::copied_nodes that a run began with; nothing where it has not begun.
using PlannedCopies = std::optional<std::vector<graph::NodeId>>;

/// The best plan by the costs within what `wanted` says; the microbatch is the profile's.
///
/// copies   exactly these, where they are given.
/// Errors   those of partition::partition and train::check_buffers.
Decision decide(const graph::Graph& graph, const MeasuredCosts& measured, const PlanOptions& wanted,
                const TrainingOptions& training, const PlannedCopies& copies = {});

/// make_front of these costs.
Front front(const graph::Graph& graph, const MeasuredCosts& measured, const PlanOptions& wanted,
            const TrainingOptions& training);

/// explain_step of these costs. measured   null: what the profile says.
partition::WhatIfs what_if(const graph::Graph& graph, const layout::Plan& plan,
                           const MeasuredCosts& costs, const TrainingOptions& training,
                           const schedule::Timeline* measured);

/// A plan that was given, checked against the recorded graph. Errors of layout::check, naming its origin.
layout::Plan checked_plan(const Plan& given, const graph::Graph& recorded);

/// A plan of what `options` says, without costs. Errors of layout::make_manual_plan.
layout::Plan plan_by_hand(const graph::Graph& recorded, const PlanOptions& options);

/// Ranks of a plan by hand: its stages times its replicas.
std::int64_t num_ranks_by_hand(const PlanOptions& options);

/// Whether a training on so many ranks measures and plans: in a run's folder, and where it was given
/// neither a plan nor stages and replicas that make as many ranks.
bool plans_itself(const SessionOptions& options, int world_size);

/// What is predicted about a step of `plan`.
///
/// planned   the graph with the plan's copies. Errors of simulate::forecast.
simulate::Forecast forecast(const graph::Graph& planned, const layout::Plan& plan,
                            const profile::Profile& profile, const topology::Topology& topology,
                            const TrainingOptions& training);

/// How long steps of `plan` take whose times differ at random. Errors of simulate::play_stragglers.
simulate::StepSpread spread_of_steps(const graph::Graph& graph, const layout::Plan& plan,
                                     const MeasuredCosts& costs, const TrainingOptions& training,
                                     const simulate::Stragglers& stragglers);

/// Of forwards and backwards of a step, all ranks together.
double compute_seconds(const simulate::Forecast& step, const BatchLayout& batch);

}  // namespace trireme::session
