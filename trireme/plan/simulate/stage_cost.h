#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::simulate {

/// What a stage does for one microbatch.
struct StageCost {
  double forward_us = 0;  ///< F: its nodes and copies.
  double input_us = 0;    ///< I.
  double weight_us = 0;   ///< W: its nodes, and adding the gradients of parameters to the lane's.
  double copy_us = 0;     ///< Putting what it sends into messages.
  std::int64_t received_bytes = 0;  ///< Values and gradients.
  std::int64_t sent_bytes = 0;

  double backward_us() const { return input_us + weight_us; }
  double work_us() const { return forward_us + backward_us() + copy_us; }
};

/// Costs by stage, of microbatches as the profile measured them.
///
/// planned, plan   the graph with the plan's copies; the plan passes layout::check against it.
/// Errors          those of profile::node_times.
std::vector<StageCost> stage_costs(const graph::Graph& planned, const layout::Plan& plan,
                                   const profile::Profile& profile);

/// The costs where ranks hold more than one microbatch (profile::slowdown).
///
/// activation_bytes   that a rank of the stage holds when it holds most; by stage.
std::vector<StageCost> costs_while_holding(std::vector<StageCost> costs,
                                           const profile::Profile& profile,
                                           const std::vector<std::int64_t>& activation_bytes);

}  // namespace trireme::simulate
