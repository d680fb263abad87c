#include "trireme/command/weights_file.h"

#include <deque>
#include <vector>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/engine/record/convert.h"

namespace trireme::command {

void save_weights(const train::Tensors& weights, const std::string& path) {
  std::vector<safetensors::Tensor> tensors;
  std::deque<std::vector<std::byte>> data;  // a deque, since the tensors are views of its elements
  for (const auto& [name, tensor] : weights) {
    data.push_back(record::to_bytes(tensor));
    tensors.push_back(
        {name, record::to_dtype(tensor.scalar_type()), tensor.sizes().vec(), data.back()});
  }
  write_file_atomically(path, safetensors::to_bytes(std::move(tensors)));
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

}  // namespace trireme::command
