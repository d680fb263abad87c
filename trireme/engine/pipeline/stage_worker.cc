#include "trireme/engine/pipeline/stage_worker.h"

#include <utility>

namespace trireme::pipeline {

StageWorker::StageWorker(const record::Recording& recording, const program::StageProgram& stage,
                         Purpose purpose, std::filesystem::path scratch)
    : recording_(recording), stage_(stage), purpose_(purpose), scratch_(std::move(scratch)) {}

void StageWorker::begin_step(const StepInput& input) {
  input_ = &input;
  runs_.clear();
  kept_.clear();
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

program::StageRun StageWorker::run_forward(int microbatch, const Batch& batch,
                                           program::ValueMap received) {
  const program::MicrobatchInput input{
      batch,
      input_->sizes[microbatch],
      {input_->seed, input_->random_step, input_->first_microbatch + microbatch}};
  return stage_.forward(input, std::move(received));
}

void StageWorker::forward(int microbatch) {
  if (purpose_ == Purpose::kEvaluate) runs_.clear();
  const graph::BatchSize& size = input_->sizes[microbatch];
  const Batch batch = stage_.fields().empty() ? Batch() : input_->read(microbatch);
  program::require_size(recording_.graph, batch, size, input_->first_microbatch + microbatch);
  program::ValueMap received = std::move(received_[microbatch]);
  received_.erase(microbatch);
  program::StageRun run =
      run_forward(microbatch, batch, stage_.recomputes() ? received : std::move(received));
  statistics_[microbatch] = std::move(run.slots.statistics);
  for (int loss : stage_.losses()) {
    const at::Tensor value = stage_.value(run, recording_.graph.losses[loss].value);
    loss_sums_[microbatch][loss] =
        program::sum_of(recording_.graph.losses[loss], value, size.samples);
  }
  if (stage_.recomputes()) return keep(microbatch, run, batch, std::move(received));
  runs_[microbatch] = std::move(run);
}

/// What was saved for the backward goes with the run.
void StageWorker::keep(int microbatch, const program::StageRun& run, const Batch& batch,
                       program::ValueMap received) {
  Kept& kept = kept_[microbatch];
  kept.received = std::move(received);
  for (const std::string& field : stage_.fields()) kept.fields[field] = batch[field];
  for (const layout::Crossing& crossing : stage_.sends()) {
    kept.sent[crossing.value] = {stage_.value(run, crossing.value).detach(),
                                 crossing.stages.size() - 1};
  }
}

void StageWorker::recompute(int microbatch) {
  if (!stage_.recomputes()) return;
  Kept kept = std::move(kept_.extract(microbatch).mapped());
  Batch batch;
  for (auto& [field, tensor] : kept.fields) batch.set(field, std::move(tensor));
  runs_[microbatch] = run_forward(microbatch, batch, std::move(kept.received));
}

program::ValueMap StageWorker::take_seeds(int microbatch, const std::vector<double>& totals) {
  program::ValueMap seeds =
      program::loss_seeds(recording_.graph, stage_, input_->sizes[microbatch].samples, totals);
  seeds.merge(seeds_[microbatch]);
  seeds_.erase(microbatch);
  return seeds;
}

void StageWorker::backward(int microbatch, const std::vector<double>& totals) {
  recompute(microbatch);
  auto run = runs_.extract(microbatch);
  returned_[microbatch] = stage_.backward(std::move(run.mapped()), take_seeds(microbatch, totals));
}

void StageWorker::backward_inputs(int microbatch, const std::vector<double>& totals) {
  recompute(microbatch);
  returned_[microbatch] =
      stage_.backward_inputs(runs_.at(microbatch), take_seeds(microbatch, totals));
}

void StageWorker::backward_weights(int microbatch) {
  auto run = runs_.extract(microbatch);
  stage_.backward_weights(std::move(run.mapped()));
}

std::vector<at::Tensor*> StageWorker::Kept::tensors() {
  std::vector<at::Tensor*> all;
  for (auto& [value, tensor] : received) all.push_back(&tensor);
  for (auto& [field, tensor] : fields) all.push_back(&tensor);
  return all;
}

void StageWorker::offload(int microbatch) {
  const auto kept = kept_.find(microbatch);
  if (kept == kept_.end()) return program::StageProgram::offload(runs_.at(microbatch), scratch_);
  kept->second.file = std::make_unique<program::OffloadedTensors>(scratch_, kept->second.tensors());
}

void StageWorker::prefetch(int microbatch) {
  const auto kept = kept_.find(microbatch);
  if (kept == kept_.end()) return runs_.at(microbatch).saved->prefetch();
  kept->second.file->prefetch();
}

void StageWorker::fetch(int microbatch) {
  const auto kept = kept_.find(microbatch);
  if (kept == kept_.end()) return runs_.at(microbatch).saved->fetch();
  kept->second.file->read(kept->second.tensors());
}

at::Tensor StageWorker::value(int microbatch, graph::ValueId value) {
  const auto kept = kept_.find(microbatch);
  if (kept == kept_.end()) return stage_.value(runs_.at(microbatch), value);
  Sent& sent = kept->second.sent.at(value);
  if (--sent.num_takers > 0) return sent.value;
  return std::move(kept->second.sent.extract(value).mapped().value);
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
