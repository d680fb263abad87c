#pragma once

#include <cstdint>

#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/analytic/layout_memory.h"
#include "trireme/plan/analytic/machine.h"
#include "trireme/plan/analytic/model_shape.h"
#include "trireme/plan/analytic/pipeline_clock.h"
#include "trireme/plan/analytic/train_layout.h"

namespace trireme::analytic {

/// A step as it is expected, by what the rank does that ends last. The parts add up to the step.
struct AnalyticStep {
  double step_s = 0;
  double compute_s = 0;  ///< Products and what is between them.
  double tensor_s =
      0;  ///< Collectives of tensor and context groups and gathers of parameters that compute waits for.
  double transfer_s = 0;   ///< Messages of the pipeline that compute waits for.
  double bubble_s = 0;     ///< Waiting for other stages.
  double reduction_s = 0;  ///< Sum of gradients that is left when the backward is done.
  double update_s = 0;     ///< Optimizer.
  double other_s = 0;      ///< What every step takes beside all this (AchievedParts::step_ms).
  MemoryByKind memory;     ///< Of the fullest rank.
  std::int64_t fullest_rank = 0;  ///< Of the pipeline.

  double samples_per_s(const TrainLayout& layout) const {
    return static_cast<double>(layout.global_batch) / step_s;
  }
};

/// Predicts a step of a model under a layout: costs of blocks from published numbers of devices, the
/// pipeline played in the order of its schedule.
///
/// Errors   kInvalidArgument of `check`, and of schedule::make_schedule.
/// Cost     a few microseconds for each stage, and each action of some rounds of the pipeline.
AnalyticStep predict(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
                     const AchievedParts& achieved, PipelineClocks& clocks);

/// The same without memory: half the cost.
AnalyticStep predict_time(const ModelShape& shape, const Machine& machine,
                          const TrainLayout& layout, const AchievedParts& achieved,
                          PipelineClocks& clocks);

/// In seconds of one microbatch. Part of the pipeline's times that is collectives, by stage.
struct StageSeconds {
  PipelineTimes times;
  std::vector<double> tensor;
};
StageSeconds stage_seconds(const ModelShape& shape, const Machine& machine,
                           const TrainLayout& layout, const AchievedParts& achieved);

}  // namespace trireme::analytic
