#include "trireme/session/weights_file.h"

#include "trireme/base/files.h"
#include "trireme/engine/checkpoint/tensor_file.h"

namespace trireme::session {

void save_weights(const train::Tensors& weights, const std::string& path) {
  checkpoint::TensorFile file;
  for (const auto& [name, tensor] : weights) file.add(name, tensor);
  write_atomically(path,
                   [&file](const std::filesystem::path& temporary) { file.write(temporary); });
}

train::Tensors state_of(const Model& model) {
  train::Tensors result;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.defined()) result[name] = tensor.detach();
    }
  }
  return result;
}

}  // namespace trireme::session
