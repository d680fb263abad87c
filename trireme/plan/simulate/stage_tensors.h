#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::simulate {

/// Bytes of the tensors of one microbatch in one stage, as torch's autograd holds them. Parameters,
/// buffers, constants and fields of the batch that no node saves are counted elsewhere.
struct StageTensors {
  /// Between its forward and its backward; of a stage that recomputes, what it received, the fields that it takes, and
  /// what goes from region to region.
  std::int64_t kept = 0;
  std::int64_t forward_peak = 0;   ///< Most at once in the forward; at least `kept`.
  std::int64_t backward_peak = 0;  ///< Most at once in the backward; at least `kept`.
  // Of a backward in two parts.
  std::int64_t input_peak = 0;  ///< Most at once in the first.
  std::int64_t waiting =
      0;  ///< Between them: what nodes that wait saved, gradients of their results.
  std::int64_t weight_peak = 0;  ///< Most at once in the second; at least `waiting`.
};

/// By stage. planned, plan, errors: as for stage_costs.
std::vector<StageTensors> stage_tensors(const graph::Graph& planned, const layout::Plan& plan,
                                        const profile::Profile& profile);

/// A stage by itself: what its tensors depend on.
struct StageNodes {
  std::vector<int> positions;          ///< Of its nodes, in its order of execution.
  std::vector<graph::ValueId> sent;    ///< Values that it makes and later stages receive.
  std::vector<graph::ValueId> ends;    ///< Values that it receives and no later stage does.
  std::vector<graph::ValueId> passed;  ///< Values that it receives and a later stage does too.
  bool holds_received = false;         ///< Those without a gradient too, to the end.
};

/// What the tensors of all stages of a graph depend on, worked out once.
struct TensorRules {
  /// Both must outlive it.
  TensorRules(const graph::Graph& planned, const profile::Profile& profile,
              std::int64_t microbatch);

  const graph::Graph& graph;
  std::int64_t microbatch;
  std::vector<const profile::NodeCost*> costs;  ///< By position.
  std::unordered_set<int> parameters;           ///< Storages of those that are trained.
  std::unordered_map<int, std::int64_t> batch;  ///< Bytes of its fields, by storage.
};

/// Of one stage that does not recompute. Cost: linear in its nodes.
StageTensors tensors_of(const TensorRules& rules, StageNodes stage);

/// What comes and goes while each node of the uncut graph runs, forward or backward, beyond what is
/// kept between the two: by position. A stage's peaks are at most what it keeps, what it receives
/// without a gradient, the gradients that it receives, and the largest of its nodes.
std::vector<std::int64_t> passing_bytes(const graph::Graph& planned,
                                        const profile::Profile& profile, std::int64_t microbatch);

}  // namespace trireme::simulate
