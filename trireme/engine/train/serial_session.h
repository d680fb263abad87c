#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/reference/serial_executor.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/loss_scale.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// Clips and updates, as the options say for `step`. Returns the norm before clipping, 0 without.
double update(parameters::Optimizer& optimizer, const parameters::ParameterStore& store,
              parameters::GradientBuffers& gradients, const OptimizerOptions& options,
              std::int64_t step, const parameters::HasGradient& has_gradient);

/// A workload being trained in this process by the serial executor.
///
/// Caller-synchronised; one thread.
class SerialSession {
 public:
  /// recorded   of the workload's model in train mode; shares its tensors.
  /// Both must outlive the session.
  /// Errors     kInvalidArgument where plan, graph and data do not fit each other.
  SerialSession(const Workload& workload, const record::Recording& recorded,
                const layout::Plan& plan, const TrainingOptions& options);

  SerialSession(const SerialSession&) = delete;
  SerialSession& operator=(const SerialSession&) = delete;

  /// The next step: B samples in the order f(seed, epoch, global index), update included. Errors
  /// carry the step.
  StepReport step();

  /// Microbatches of a step; a pure function of it.
  std::vector<Batch> microbatches(std::int64_t step) const;

  /// As RankSession::exchange_averages.
  void exchange_averages() { parameters::exchange_averages(*optimizer_, store_); }

  std::int64_t next_step() const { return next_step_; }
  const parameters::ParameterStore& store() const { return store_; }
  const reference::SerialExecutor& executor() const { return executor_; }

 private:
  bool may_update(const StepLosses& losses, const parameters::HasGradient& has_gradient,
                  std::int64_t step, double& norm);
  StepReport run(std::int64_t step);

  const Workload& workload_;
  const record::Recording& recorded_;
  record::Recording recording_;  ///< With the plan's copies.
  layout::Plan plan_;
  TrainingOptions options_;
  StepReader reader_;
  parameters::ParameterStore store_;
  reference::SerialExecutor executor_;
  std::unique_ptr<parameters::Optimizer> optimizer_;
  LossScale loss_scale_;
  std::int64_t next_step_ = 0;
};

/// Refuses, before a training, an evaluation whose last microbatch would have a size that the graph
/// does not hold for (Graph::microbatch), or whose samples are padded to other lengths: kInvalidArgument with the
/// numbers and what to do. Errors of check_metrics.
void check_evaluation_data(const graph::Graph& graph, const Workload& workload,
                           std::int64_t microbatch);

/// Losses over every sample of the workload's evaluation data, once each, and its metrics behind them.
///
/// step        that the step scalars are taken at.
/// recording   of the model in eval mode. kInvalidArgument where there is no evaluation data.
StepLosses evaluate(const Workload& workload, const record::Recording& recording,
                    std::int64_t microbatch, std::int64_t step, int reader_threads = 1);

}  // namespace trireme::train
