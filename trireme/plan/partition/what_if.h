#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// A plan, and the costs by which steps of it are played.
struct PlannedStep {
  const graph::Graph& recorded;
  const layout::Plan& plan;
  const profile::Profile& profile;
  const topology::Topology& topology;
  const simulate::ForecastOptions& options;
  /// Of a step that really ran: actions take what they took there. Null: what the profile says.
  const schedule::Timeline* measured = nullptr;
};

/// A step in which one thing is changed.
struct WhatIf {
  std::string change;           ///< For people: `links twice as fast`.
  double step_us = 0;           ///< Played with it.
  double us_per_sample = 0;     ///< Changes may have other batches.
  std::int64_t peak_bytes = 0;  ///< Of the fullest rank.
};

struct WhatIfs {
  WhatIf now;                   ///< The step as it is.
  std::vector<WhatIf> changes;  ///< Those with least time per sample first.
};

/// The step played again with one thing changed:
///
///  * what machines take: links twice as fast, or messages, sums and updates in no time; a core for each rank; one stage's
///    work in half the time; stages of equal length; times that differ at random (what_if_late.h); where the step was
///    measured, microbatches of equal length, and no replica slower than the fastest;
///  * the plan: other schedules, no recomputed stages, twice the microbatches;
///  * a new plan: for these machines, with one host more (or a rank, where links between hosts were
///    not measured), with twice the memory.
///
/// Changes that cannot be made are left out.
/// Errors   those of simulate::forecast.
WhatIfs what_if(const PlannedStep& step);

/// As a table for people: each change with its step, its time per sample against now, and its peak.
std::string show(const WhatIfs& what_ifs);

}  // namespace trireme::partition
