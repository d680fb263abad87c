#include "trireme/engine/train/plain_loop.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include "trireme/base/error.h"
#include "trireme/engine/record/generator.h"

namespace trireme::train {
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

}  // namespace

serial::StepLosses PlainLoop::run_step(std::int64_t step, const std::vector<Batch>& microbatches) {
  model_.set_training(true);
  for (const NamedTensor& parameter : model_.parameters) {
    parameter.tensor.mutable_grad() = at::Tensor();
  }
  std::vector<Losses> all;
  serial::StepLosses result;
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    record::Reseeder reseeder({seed_, step, static_cast<std::int64_t>(m)});
    const record::Observation observation(reseeder);
    all.push_back(model_.forward(microbatches[m]));
    observation.rethrow();
  }
  for (std::size_t m = 0; m < all.size(); ++m) {
    const std::int64_t samples = num_samples(model_, microbatches[m]);
    for (std::size_t i = 0; i < all[m].size(); ++i) {
      if (m == 0) {
        result.losses.push_back({.name = all[m][i].name, .coefficient = all[m][i].coefficient});
      }
      const double weight = weight_of(all[m][i], samples);
      const double value = all[m][i].value.item<double>();
      result.losses[i].sum += all[m][i].weight.defined() ? value : value * weight;
      result.losses[i].weight += weight;
    }
  }
  for (std::size_t m = 0; m < all.size(); ++m) {
    const std::int64_t samples = num_samples(model_, microbatches[m]);
    torch::autograd::variable_list roots, seeds;
    for (std::size_t i = 0; i < all[m].size(); ++i) {
      const Loss& loss = all[m][i];
      if (loss.coefficient == 0) continue;
      const double factor = loss.weight.defined() ? 1.0 : weight_of(loss, samples);
      roots.push_back(loss.value);
      seeds.push_back(at::scalar_tensor(loss.coefficient * factor / result.losses[i].weight,
                                        loss.value.options()));
    }
    torch::autograd::backward(roots, seeds);
    all[m].clear();
  }
  return result;
}

}  // namespace trireme::train
