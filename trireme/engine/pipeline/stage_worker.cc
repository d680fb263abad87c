#include "trireme/engine/pipeline/stage_worker.h"

#include <algorithm>
#include <utility>

namespace trireme::pipeline {

StageWorker::StageWorker(const record::Recording& recording, const program::StageProgram& stage,
                         Purpose purpose, std::filesystem::path scratch)
    : recording_(recording), stage_(stage), purpose_(purpose), scratch_(std::move(scratch)) {}

void StageWorker::begin_step(const StepInput& input) {
  input_ = &input;
  runs_.clear();
  num_takers_.clear();
  received_.clear();
  seeds_.clear();
  returned_.clear();
  loss_sums_.assign(input.sizes.size(), std::vector<double>(recording_.graph.losses.size(), 0.0));
  statistics_.assign(input.sizes.size(), {});
}

void StageWorker::put_value(int microbatch, graph::ValueId value, at::Tensor tensor) {
  received_[microbatch][value] = std::move(tensor);
}

void StageWorker::put_gradient(int microbatch, graph::ValueId value, at::Tensor tensor) {
  if (tensor.defined()) seeds_[microbatch][value] = std::move(tensor);
}

void StageWorker::forward(int microbatch) {
  if (purpose_ == Purpose::kEvaluate) runs_.clear();
  const graph::BatchSize& size = input_->sizes[microbatch];
  const Batch batch = stage_.fields().empty() ? Batch() : input_->read(microbatch);
  program::require_size(recording_.graph, batch, size, input_->index_of(microbatch));
  program::ValueMap received = std::move(received_[microbatch]);
  received_.erase(microbatch);
  program::StageRun run = stage_.forward(
      {batch, size, {input_->seed, input_->random_step, input_->index_of(microbatch)}},
      std::move(received));
  statistics_[microbatch] = std::move(run.slots.statistics);
  for (int loss : stage_.losses()) {
    const at::Tensor value = stage_.value(run, recording_.graph.losses[loss].value);
    loss_sums_[microbatch][loss] =
        program::sum_of(recording_.graph.losses[loss], value, size.samples);
    if (stage_.recomputes() && !is_sent(recording_.graph.losses[loss].value)) {
      stage_.release(run, recording_.graph.losses[loss].value);
    }
  }
  runs_[microbatch] = std::move(run);
}

bool StageWorker::is_sent(graph::ValueId value) const {
  const auto& sends = stage_.sends();
  return std::ranges::find(sends, value, &layout::Crossing::value) != sends.end();
}

program::ValueMap StageWorker::take_seeds(int microbatch, const std::vector<double>& totals) {
  program::ValueMap seeds =
      program::loss_seeds(recording_.graph, stage_, input_->sizes[microbatch].samples, totals);
  seeds.merge(seeds_[microbatch]);
  seeds_.erase(microbatch);
  return seeds;
}

void StageWorker::backward(int microbatch, const std::vector<double>& totals) {
  auto run = runs_.extract(microbatch);
  returned_[microbatch] = stage_.backward(std::move(run.mapped()), take_seeds(microbatch, totals));
}

void StageWorker::backward_inputs(int microbatch, const std::vector<double>& totals) {
  returned_[microbatch] =
      stage_.backward_inputs(runs_.at(microbatch), take_seeds(microbatch, totals));
}

void StageWorker::backward_weights(int microbatch) {
  auto run = runs_.extract(microbatch);
  stage_.backward_weights(std::move(run.mapped()));
}

void StageWorker::offload(int microbatch) {
  program::StageProgram::offload(runs_.at(microbatch), scratch_);
}

void StageWorker::prefetch(int microbatch) {
  program::StageProgram::prefetch(runs_.at(microbatch));
}

void StageWorker::fetch(int microbatch) { program::StageProgram::fetch(runs_.at(microbatch)); }

at::Tensor StageWorker::value(int microbatch, graph::ValueId value) {
  at::Tensor tensor = stage_.value(runs_.at(microbatch), value);
  if (stage_.recomputes()) count_taker(microbatch, value);
  return tensor;
}

/// The last of the stages that take a value is the end of it here.
void StageWorker::count_taker(int microbatch, graph::ValueId value) {
  const auto sent = std::ranges::find(stage_.sends(), value, &layout::Crossing::value);
  if (sent == stage_.sends().end()) return;
  if (++num_takers_[{microbatch, value}] + 1 == sent->stages.size()) {
    stage_.release(runs_.at(microbatch), value);
  }
}

at::Tensor StageWorker::take_gradient(int microbatch, graph::ValueId value) {
  auto& gradients = returned_[microbatch];
  const auto found = gradients.find(value);
  if (found == gradients.end()) return {};
  at::Tensor gradient = std::move(found->second);
  gradients.erase(found);
  return gradient;
}

}  // namespace trireme::pipeline
