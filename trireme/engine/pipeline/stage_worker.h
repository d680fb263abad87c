#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/program/step_losses.h"

namespace trireme::pipeline {

/// The microbatches of a step, or of a part of an evaluation, as a rank sees them: those of its replicas
/// (schedule::actions_of_rank).
struct StepInput {
  std::uint64_t seed = 0;  ///< Of the random streams, with `random_step`.
  std::int64_t step = 0;   ///< For errors.
  std::int64_t random_step = 0;
  std::vector<graph::BatchSize>
      sizes;  ///< By microbatch of the rank; those without samples are left out.
  std::vector<std::int64_t> indices = {};  ///< Global, by microbatch; empty: the same.
  std::function<Batch(int microbatch)> read;
  std::string purpose;  ///< For errors, behind what was done: ` of the evaluation`.

  int num_microbatches() const { return static_cast<int>(sizes.size()); }
  std::int64_t index_of(int microbatch) const {
    return indices.empty() ? microbatch : indices[microbatch];
  }
  bool has(int microbatch) const { return sizes[microbatch].samples > 0; }
  std::int64_t num_present() const {
    return std::ranges::count_if(sizes, [](const auto& size) { return size.samples > 0; });
  }
  std::int64_t num_samples() const {
    std::int64_t count = 0;
    for (const graph::BatchSize& size : sizes) count += size.samples;
    return count;
  }
};

/// Runs the microbatches of one stage and keeps them between forward and backward; where nothing is
/// trained, until the next forward. One that recomputes lets go of what it sends, once that is sent.
///
/// Confined to the thread that runs the step.
class StageWorker {
 public:
  enum class Purpose : std::uint8_t { kTrain, kEvaluate };

  /// recording, stage   outlive the worker.
  /// scratch            folder for what microbatches keep, where the stage offloads.
  StageWorker(const record::Recording& recording, const program::StageProgram& stage,
              Purpose purpose = Purpose::kTrain, std::filesystem::path scratch = {});

  /// input   outlives the step.
  void begin_step(const StepInput& input);

  /// A value or gradient that the stage needs for a microbatch; undefined where it is absent.
  void put_value(int microbatch, graph::ValueId value, at::Tensor tensor);
  void put_gradient(int microbatch, graph::ValueId value, at::Tensor tensor);

  void forward(int microbatch);

  /// totals   weight of each loss over the step (Operations::totals).
  void backward(int microbatch, const std::vector<double>& totals);

  /// The same in two parts; gradients of parameters go to the sink in the second.
  void backward_inputs(int microbatch, const std::vector<double>& totals);
  void backward_weights(int microbatch);

  /// What a microbatch keeps goes to a file, after its values were sent; is asked for; is there again.
  ///
  /// Errors   those of program::SavedTensors.
  void offload(int microbatch);
  void prefetch(int microbatch);
  void fetch(int microbatch);

  /// What forward or backward made for another stage; a value once for each stage that takes it. A gradient is handed
  /// over; undefined where the backward did not reach the value.
  at::Tensor value(int microbatch, graph::ValueId value);
  at::Tensor take_gradient(int microbatch, graph::ValueId value);

  /// Sums of the losses made here: [microbatch][loss]; 0 for others.
  const std::vector<std::vector<double>>& loss_sums() const { return loss_sums_; }

  /// Statistics of batch norms, [microbatch], in node order.
  std::vector<std::vector<program::NormStatistics>> take_statistics() {
    return std::move(statistics_);
  }

 private:
  bool is_sent(graph::ValueId value) const;
  void count_taker(int microbatch, graph::ValueId value);
  program::ValueMap take_seeds(int microbatch, const std::vector<double>& totals);

  const record::Recording& recording_;
  const program::StageProgram& stage_;
  Purpose purpose_;
  std::filesystem::path scratch_;
  const StepInput* input_ = nullptr;
  std::map<int, program::StageRun> runs_;
  std::map<std::pair<int, graph::ValueId>, std::size_t> num_takers_;  ///< That have a sent value.
  std::map<int, program::ValueMap> received_;                         ///< Values by microbatch.
  std::map<int, program::ValueMap> seeds_;                            ///< Gradients received.
  std::map<int, program::ValueMap> returned_;                         ///< Gradients to be sent.
  std::vector<std::vector<double>> loss_sums_;
  std::vector<std::vector<program::NormStatistics>> statistics_;
};

}  // namespace trireme::pipeline
