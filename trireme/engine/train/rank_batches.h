#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/engine/train/prefetch.h"
#include "trireme/engine/train/step_reader.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// The microbatches of a rank, read ahead: for the weights of losses that its stage needs, which
/// come before the step's first forward, and for its forwards. Where both take them, none is read
/// twice (simulate::keeps_batches). A stage that takes no field reads nothing.
///
/// Confined to the thread that runs the step.
class RankBatches {
 public:
  /// reader, recording, stage   outlive this. stage: of the plan.
  RankBatches(const StepReader& reader, const record::Recording& recording,
              const program::StageProgram& stage, const layout::Plan& plan, int replica);

  /// Weights of the losses, [microbatch][loss] (WeightProgram::weights); begins a step. NaN for
  /// those that the stage does not need.
  std::vector<std::vector<double>> weigh(std::int64_t step);

  /// For the forward of a microbatch of the replica: the stage's fields at least.
  ///
  /// Errors   of the source.
  Batch take(std::int64_t step, int microbatch);

  int num_microbatches() const { return num_microbatches_; }

  /// Global index of the replica's first.
  std::int64_t first_microbatch() const { return first_; }

  /// Seconds that microbatches were waited for since the last call.
  double take_waited_seconds() { return prefetch_.take_waited_seconds(); }

 private:
  std::vector<std::int64_t> reading_order() const;

  const graph::Graph& graph_;
  const program::StageProgram& stage_;
  std::int64_t num_samples_;  ///< Of a microbatch.
  int num_microbatches_;
  std::int64_t first_;
  program::WeightProgram weights_;
  bool keeps_;                 ///< From `weigh` to `take`.
  std::map<int, Batch> kept_;  ///< The stage's fields.
  Prefetch prefetch_;
};

}  // namespace trireme::train
