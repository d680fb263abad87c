#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trireme/data/order.h"
#include "trireme/engine/optim/optimizer.h"
#include "trireme/engine/parameters/store.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/serial/executor.h"
#include "trireme/engine/train/workload.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

struct OptimizerOptions {
  std::string name = "adamw";  ///< `adamw` or `sgd`.
  double learning_rate = 1e-3;
  std::int64_t warmup_steps = 0;  ///< The rate grows linearly to its full value over these.
  double momentum = 0.9;          ///< Of sgd.
  double weight_decay = 0.01;
  double clip_norm = 0;  ///< 0: gradients are not clipped.
};

/// kInvalidArgument for an unknown name.
std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerOptions& options);

/// Clips and updates, as the options say for `step`. Returns the norm before clipping, 0 without.
double update(optim::Optimizer& optimizer, const parameters::ParameterStore& store,
              parameters::GradientBuffers& gradients, const OptimizerOptions& options,
              std::int64_t step, const optim::HasGradient& has_gradient);

struct SessionOptions {
  // Changes results.
  std::uint64_t seed = 0;
  OptimizerOptions optimizer;
  // Changes nothing but what is noticed.
  std::int64_t drift_check_step = 100;  ///< -1: never.
};

/// What one step was.
struct StepReport {
  std::int64_t step = 0;  ///< From 0.
  serial::StepLosses losses;
  double gradient_norm = 0;  ///< Before clipping; 0 where it is not asked for.
  double seconds = 0;
};

/// A workload being trained in this process by the serial executor.
///
/// Caller-synchronised; one thread.
class Session {
 public:
  /// recorded   of the workload's model in train mode; shares its tensors.
  /// Both must outlive the session.
  /// Errors     kInvalidArgument where plan, graph and data do not fit each other.
  Session(const Workload& workload, const record::Recording& recorded, const layout::Plan& plan,
          const SessionOptions& options);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The next step: B samples in the order f(seed, epoch, global index), update included. Errors
  /// carry the step.
  StepReport step();

  /// Microbatches of a step; a pure function of it.
  std::vector<Batch> microbatches(std::int64_t step) const;

  std::int64_t next_step() const { return next_step_; }
  const parameters::ParameterStore& store() const { return store_; }
  const serial::SerialExecutor& executor() const { return executor_; }

 private:
  StepReport run(std::int64_t step);

  const Workload& workload_;
  const record::Recording& recorded_;
  record::Recording recording_;  ///< With the plan's copies.
  layout::Plan plan_;
  SessionOptions options_;
  BatchReader reader_;
  data::SampleOrder order_;
  parameters::ParameterStore store_;
  serial::SerialExecutor executor_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::int64_t next_step_ = 0;
};

/// Losses over every sample of the workload's evaluation data, once each.
///
/// step        that the step scalars are taken at.
/// recording   of the model in eval mode. kInvalidArgument where there is no evaluation data.
serial::StepLosses evaluate(const Workload& workload, const record::Recording& recording,
                            std::int64_t microbatch, std::int64_t step);

}  // namespace trireme::train
