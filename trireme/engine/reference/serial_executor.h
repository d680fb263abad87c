#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/engine/parameters/lane_accumulator.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/program/buffer_commit.h"
#include "trireme/engine/program/stage_chain.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/engine/program/weight_program.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::reference {

struct SerialOptions {
  Dtype gradient_dtype =
      Dtype::kF32;  ///< Partial sums of gradients are rounded to it (LaneAccumulator).
  std::filesystem::path scratch = {};  ///< As of program::StageChain.
  /// Whether a loss has gradients in a step; empty: all have.
  std::function<bool(std::int64_t step, const std::string& loss)> counts = {};
  program::Capture capture = program::Capture::kOn;  ///< Decides speed only.
};

/// The reference for every layout: runs all stages of a plan in one process, one microbatch after
/// the other, under the equality contract (docs/concepts/equality.md).
///
/// Caller-synchronised. Needs one intra-op thread (memory::apply_torch_settings).
class SerialExecutor {
 public:
  using MayCommit = std::function<bool(const StepLosses& losses)>;

  /// recording, store   must outlive the executor; the store holds the recording's parameters.
  /// seed               of the random streams.
  /// Errors   those of layout::check.
  SerialExecutor(const record::Recording& recording, const layout::Plan& plan,
                 const parameters::ParameterStore& store, std::uint64_t seed,
                 const SerialOptions& options = {});

  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  /// Forward and backward of all microbatches of a step, in global order. Afterwards `gradients()`
  /// holds the gradient of the step loss and the buffers are those of the next step.
  ///
  /// microbatches   B/b of them, b samples each, with their step scalars; kInvalidArgument if not.
  /// loss_scale     gradients are those of the loss times this.
  /// may_commit     asked when the gradients are there; where it says no, buffers stay as they were.
  StepLosses run_step(std::int64_t step, const std::vector<Batch>& microbatches,
                      double loss_scale = 1, const MayCommit& may_commit = {});

  /// Of the stages: what became of their captures.
  std::vector<program::CaptureReport> capture_reports() const;

  parameters::LaneAccumulator& gradients() { return accumulator_; }
  const parameters::LaneAccumulator& gradients() const { return accumulator_; }

 private:
  /// Hands gradients of sites to the accumulator.
  class Sink : public program::GradientSink {
   public:
    explicit Sink(parameters::LaneAccumulator& accumulator) : accumulator_(accumulator) {}
    void accept(int site, const at::Tensor& gradient) override {
      accumulator_.accept(site, gradient);
    }

   private:
    parameters::LaneAccumulator& accumulator_;
  };

  graph::BatchSize size_of(const Batch& batch) const;
  std::vector<std::vector<double>> weigh(const std::vector<Batch>& microbatches) const;
  void add_losses(const std::vector<program::StageRun>& runs, const std::vector<double>& weights,
                  StepLosses& losses) const;

  const record::Recording& recording_;
  layout::Plan plan_;
  std::uint64_t seed_;
  std::function<bool(std::int64_t step, const std::string& loss)> counts_;
  parameters::LaneAccumulator accumulator_;
  Sink sink_;
  program::SiteTable sites_;
  program::WeightProgram weights_;
  program::BufferCommits commits_;
  program::StageChain stages_;
};

/// Sums the losses of an evaluation recording over microbatches of any sizes. Caller-synchronised.
class Evaluator {
 public:
  /// recording   in eval mode; must outlive the evaluator.
  explicit Evaluator(const record::Recording& recording);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// One forward; returns the outputs. Random nodes, if there are any, draw from streams of `seed` and the order of
  /// calls.
  Batch add(const Batch& batch, std::uint64_t seed);

  const StepLosses& losses() const { return losses_; }

 private:
  const record::Recording& recording_;
  program::WeightProgram weights_;
  std::unique_ptr<program::NodeProgram> nodes_;
  StepLosses losses_;
  std::int64_t num_batches_ = 0;
};

}  // namespace trireme::reference
