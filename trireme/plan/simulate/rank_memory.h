#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/schedule/action.h"
#include "trireme/plan/simulate/held_messages.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::simulate {

/// Predicted bytes of live tensors of a rank when it holds most, by what they are. Where the plan shards parameters,
/// values and gradients are those of that moment (held_state.h).
struct RankMemory {
  std::int64_t parameters = 0;   ///< Values owned and mirrored here.
  std::int64_t gradients = 0;    ///< Flat buffers of the lanes' partial sums.
  std::int64_t optimizer = 0;    ///< State of the parameters owned here.
  std::int64_t activations = 0;  ///< Kept for backwards, of the most microbatches in flight.
  std::int64_t transient = 0;    ///< Beyond those, inside one forward or backward.
  /// What boundary values and gradients that are sent or were received add to these, however slow
  /// other ranks are (held_messages.h), and sums of shared parameters.
  std::int64_t messages = 0;
  std::int64_t batch = 0;  ///< Samples of the microbatches that run, are kept or read ahead.
  std::int64_t fixed = 0;  ///< Frozen parameters, buffers and constants.

  std::int64_t total() const;

  /// What is not 0, by name.
  std::map<std::string, std::int64_t> by_kind() const;
  bool operator==(const RankMemory&) const = default;
};

struct MemoryOptions {
  /// Per element of a parameter: 8 for AdamW, 4 for SGD with momentum, 0 without.
  std::int64_t optimizer_bytes_per_element = 8;

  /// TrainingOptions::gradient_dtype: replicas that send bf16 hold a copy of their sums as that.
  Dtype gradient_dtype = Dtype::kF32;
};

/// Flat gradient buffers that `num_lanes` lanes need: those of the balanced tree over lanes that
/// arrive one after another (kernels/reduce).
int num_gradient_buffers(std::int64_t num_lanes);

/// Bytes per element in which gradients of `dtype` are summed.
std::int64_t gradient_bytes_per_element(Dtype dtype);

/// Bytes per element in which replicas send sums of gradients of `dtype`.
///
/// gradient_dtype   TrainingOptions::gradient_dtype.
std::int64_t sent_bytes_per_element(Dtype dtype, Dtype gradient_dtype);

/// Bytes per element of all flat buffers of gradients that a rank holds.
///
/// num_lanes      that are folded one after another: of a replica.
/// num_ranks      that hold copies: of a position.
/// num_replicas   of the rank, whose lanes are folded side by side.
std::int64_t held_bytes_per_element(Dtype dtype, Dtype gradient_dtype, std::int64_t num_lanes,
                                    int num_ranks, int num_replicas = 1);

/// What every rank holds whatever the plan: buffers, constants, parameters that no node uses.
std::int64_t fixed_bytes(const graph::Graph& planned);

/// By position of the pipeline: that, and the frozen parameters that nodes there use.
std::vector<std::int64_t> fixed_bytes(const graph::Graph& planned, const layout::Plan& plan);

/// Activations, what a pass adds to them, and messages, of a rank when it holds most of the three together.
///
/// tensors    by stage; those of the rank's stages.
/// messages   by action: held_messages.h.
/// offloads   by stage: what is in files between forward and backward is not held (schedule/offload.h).
RankMemory run_memory(const std::vector<schedule::Action>& actions,
                      std::span<const StageTensors* const> tensors,
                      const std::vector<HeldMessages>& messages, const std::vector<bool>& offloads);

/// The same of a rank with one stage, which has these and does not offload.
RankMemory run_memory(const std::vector<schedule::Action>& actions, const StageTensors& tensors,
                      const std::vector<HeldMessages>& messages);

/// By world rank; ranks of other roles than `train` have none. One that runs several replicas holds values and state once.
///
/// planned, plan, map   as for schedule::make_step_program.
/// tensors              what `stage_tensors` gave.
/// messages             by world rank, by action: expected_messages.h. Null: the most that can be (held_messages.h).
/// Errors               those of schedule::make_schedule.
std::vector<RankMemory> rank_memory(
    const graph::Graph& planned, const layout::Plan& plan, const layout::ParameterMap& map,
    const std::vector<StageTensors>& tensors, const MemoryOptions& options,
    const std::vector<std::vector<HeldMessages>>* messages = nullptr);

}  // namespace trireme::simulate
