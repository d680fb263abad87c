#include "trireme/engine/reference/plain_loop.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "trireme/engine/record/observer.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/error.h"

namespace trireme::reference {
namespace {

double weight_of(const Loss& loss, std::int64_t samples) {
  return loss.weight.defined() ? loss.weight.item<double>() : static_cast<double>(samples);
}

std::int64_t num_samples(const Model& model, const Batch& batch) {
  for (const auto& [name, tensor] : batch.tensors()) {
    const auto dim = model.batch_dims.find(name);
    if (tensor.dim() > 0) return tensor.size(dim == model.batch_dims.end() ? 0 : dim->second);
  }
  throw Error(ErrorKind::kInvalidArgument, "the batch has no field with samples");
}

/// Adds a microbatch's losses to the totals; their weights are those of `result` at the end.
void add(const Losses& losses, std::int64_t samples, StepLosses& result) {
  if (result.losses.empty()) {
    for (const Loss& loss : losses) {
      result.losses.push_back({.name = loss.name, .coefficient = loss.coefficient});
    }
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double weight = weight_of(losses[i], samples);
    const double value = losses[i].value.item<double>();
    result.losses[i].sum += losses[i].weight.defined() ? value : value * weight;
    result.losses[i].weight += weight;
  }
}

/// totals   weight of each loss over the step.
void run_backward(const Losses& losses, std::int64_t samples, const std::vector<double>& totals) {
  torch::autograd::variable_list roots, seeds;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Loss& loss = losses[i];
    if (loss.coefficient == 0) continue;
    const double factor = loss.weight.defined() ? 1.0 : weight_of(loss, samples);
    roots.push_back(loss.value);
    seeds.push_back(at::scalar_tensor(loss.coefficient * factor / totals[i], loss.value.options()));
  }
  torch::autograd::backward(roots, seeds);
}

bool has_weights(const Losses& losses) {
  return std::any_of(losses.begin(), losses.end(),
                     [](const Loss& loss) { return loss.weight.defined(); });
}

}  // namespace

/// Without outputs; losses that do not count are only reported.
Losses PlainLoop::forward(std::int64_t step, std::size_t microbatch, const Batch& batch) const {
  record::Reseeder reseeder({seed_, step, static_cast<std::int64_t>(microbatch)});
  const record::Observation observation(reseeder);
  Losses losses = model_.forward(batch);
  observation.rethrow();
  std::erase_if(losses, [](const Loss& loss) { return loss.is_output; });
  for (Loss& loss : losses) {
    if (counts_ && !counts_(step, loss.name)) loss.coefficient = 0;
  }
  return losses;
}

StepLosses PlainLoop::run_step(std::int64_t step, const std::vector<Batch>& microbatches) {
  model_.set_training(true);
  for (const NamedTensor& parameter : model_.parameters) {
    parameter.tensor.mutable_grad() = at::Tensor();
  }
  std::int64_t all_samples = 0;
  for (const Batch& batch : microbatches) all_samples += num_samples(model_, batch);
  std::vector<Losses> waiting;  // losses with weights wait for the step's totals
  StepLosses result;
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    Losses losses = forward(step, m, microbatches[m]);
    const std::int64_t samples = num_samples(model_, microbatches[m]);
    add(losses, samples, result);
    if (has_weights(losses)) {
      waiting.push_back(std::move(losses));
    } else {
      run_backward(losses, samples,
                   std::vector<double>(losses.size(), static_cast<double>(all_samples)));
    }
  }
  std::vector<double> totals;
  for (const LossTotal& loss : result.losses) totals.push_back(loss.weight);
  for (std::size_t m = 0; m < waiting.size(); ++m) {
    run_backward(waiting[m], num_samples(model_, microbatches[m]), totals);
    waiting[m].clear();
  }
  return result;
}

}  // namespace trireme::reference
