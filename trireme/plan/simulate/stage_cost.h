#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::simulate {

/// Memory from the first to the last element that `value` reaches where the batch has `batch`
/// samples: what it takes alone, and what a message with it carries. An expanded tensor spans less
/// than its elements, a slice more.
///
/// Errors   those of graph::bytes_at.
std::int64_t span_bytes(const graph::Value& value, std::int64_t batch);

/// Bytes of the fields of the batch, by storage.
std::unordered_map<int, std::int64_t> batch_storages(const graph::Graph& graph,
                                                     std::int64_t microbatch);

/// What a stage does for one microbatch.
struct StageCost {
  double forward_us = 0;  ///< F: its nodes and copies.
  double input_us = 0;    ///< I; of a stage that recomputes, with another F, region by region.
  double weight_us = 0;   ///< W: its nodes, and adding the gradients of parameters to the lane's.
  double read_us = 0;  ///< Reading samples beside F, if no stage of its rank before it takes any.
  double copy_us = 0;  ///< For the messages that it sends: profile::message_work_us.
  std::int64_t received_bytes = 0;  ///< Values and gradients.
  std::int64_t sent_bytes = 0;
  std::int64_t offloaded_bytes = 0;  ///< That a microbatch keeps, where they go to a file.

  double backward_us() const { return input_us + weight_us; }
  double work_us() const { return forward_us + backward_us() + read_us + copy_us; }
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

/// When the gradients of each bucket of the map are complete: after which part of a backward of its
/// stage, 0 to 1. The backward runs the stage's nodes in reverse; a use site has its gradient once
/// the first node that uses it has run, and then adds it.
///
/// planned, plan, map   as for schedule::make_step_program.
/// Errors               those of profile::node_times.
/// Cost                 linear in nodes and sites.
std::vector<double> bucket_completions(const graph::Graph& planned, const layout::Plan& plan,
                                       const layout::ParameterMap& map,
                                       const profile::Profile& profile);

}  // namespace trireme::simulate
