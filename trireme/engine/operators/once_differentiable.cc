#include "trireme/engine/operators/once_differentiable.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <memory>
#include <string>
#include <utility>

namespace trireme::operators::internal {

std::vector<at::Tensor> once_differentiable(const char* op, std::vector<at::Tensor> gradients) {
  if (!at::GradMode::is_enabled()) return gradients;
  // Autograd sees what comes out as made of these, by a node that refuses.
  for (at::Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = gradient.detach().requires_grad_();
  }
  const auto refusal = std::make_shared<torch::autograd::DelayedError>(
      "trireme::" + std::string(op) + " has no second derivative: its gradients were made with " +
          "create_graph and then differentiated; detach() them",
      static_cast<std::int64_t>(gradients.size()));
  return (*refusal)(std::move(gradients));
}

}  // namespace trireme::operators::internal
