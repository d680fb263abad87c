#include "trireme/engine/train/give_state.h"

#include <ATen/core/grad_mode.h>

namespace trireme::train {

void give_state(const Model& model, const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      const auto found = tensors.find(name);
      if (found == tensors.end() || !tensor.defined()) continue;
      at::Tensor(tensor).set_data(found->second);
    }
  }
}

}  // namespace trireme::train
