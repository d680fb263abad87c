#include "trireme/command/weights_file.h"

#include <utility>
#include <vector>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/engine/record/convert.h"

namespace trireme::command {

void save_weights(const train::Tensors& weights, const std::string& path) {
  std::vector<safetensors::Tensor> tensors;
  std::vector<at::Tensor> dense;  // what the spans look at; copies where strides are others
  for (const auto& [name, tensor] : weights) {
    dense.push_back(tensor.detach().contiguous());
    tensors.push_back(
        {name,
         record::to_dtype(tensor.scalar_type()),
         tensor.sizes().vec(),
         {static_cast<const std::byte*>(dense.back().const_data_ptr()), dense.back().nbytes()}});
  }
  const std::string partial = path + ".partial";
  safetensors::write(partial, std::move(tensors));
  rename_durably(partial, path);
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
