#include "trireme/engine/record/state_guard.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

namespace trireme::record {

StateGuard::StateGuard(const Model& model) : generator_(at::detail::getDefaultCPUGenerator()) {
  for (const NamedTensor& buffer : model.buffers) {
    if (buffer.tensor.defined()) buffers_.emplace_back(buffer.tensor, buffer.tensor.clone());
  }
  for (const auto& [name, tensor] : model.parameters) {
    if (tensor.defined()) parameters_.push_back({tensor, tensor.requires_grad(), tensor.grad()});
  }
  generator_state_ = generator_.get_state();
}

StateGuard::~StateGuard() {
  const c10::NoGradGuard no_grad;
  for (auto& [tensor, copy] : buffers_) tensor.copy_(copy);
  for (GradientState& state : parameters_) {
    if (state.parameter.requires_grad() != state.is_required) {
      state.parameter.set_requires_grad(state.is_required);
    }
    state.parameter.mutable_grad() = state.gradient;
  }
  generator_.set_state(generator_state_);
}

ModeGuard::ModeGuard(const Model& model, graph::Mode mode) : model_(model) {
  model.set_training(mode == graph::Mode::kTrain);
}

ModeGuard::~ModeGuard() { model_.set_training(true); }

}  // namespace trireme::record
