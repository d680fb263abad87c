#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "trireme/engine/record/model.h"

namespace trireme {

/// Collects what `module` registers; `forward` is called with each batch.
///
/// forward   returns Losses, a Loss, or a 0-dim tensor (then the mean loss `loss`).
template <typename Forward>
Model make_model(std::shared_ptr<torch::nn::Module> module, Forward forward) {
  Model model;
  for (const auto& item : module->named_parameters()) {
    model.parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : module->named_buffers()) {
    model.buffers.push_back({item.key(), item.value()});
  }
  model.forward = [forward = std::move(forward)](const Batch& batch) mutable -> Losses {
    using Result = std::decay_t<decltype(forward(batch))>;
    if constexpr (std::is_same_v<Result, Losses>) {
      return forward(batch);
    } else if constexpr (std::is_same_v<Result, Loss>) {
      return {forward(batch)};
    } else {
      return {mean_loss(forward(batch))};
    }
  };
  model.set_training = [raw = module.get()](bool training) { raw->train(training); };
  model.owner = std::move(module);
  return model;
}

/// A module whose own `forward` takes a Batch.
template <typename Module>
Model make_model(std::shared_ptr<Module> module) {
  Module* raw = module.get();
  return make_model(std::static_pointer_cast<torch::nn::Module>(std::move(module)),
                    [raw](const Batch& batch) { return raw->forward(batch); });
}

}  // namespace trireme
