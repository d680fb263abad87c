#include "trireme/engine/train/whole_model.h"

#include <ATen/Functions.h>

namespace trireme::train {

WholeModel::WholeModel(const record::Recording& recording) {
  for (const graph::Parameter& parameter : recording.graph.parameters) {
    std::vector<std::int64_t> shape;
    for (const auto& size : recording.graph.values[parameter.value].shape) {
      shape.push_back(size.at(0));
    }
    at::Tensor tensor = recording.tensors[parameter.value];
    if (tensor.sizes() == shape) continue;
    tensor.set_data(at::zeros(shape, tensor.options()));
    lent_.push_back(std::move(tensor));
  }
}

WholeModel::~WholeModel() {
  for (const at::Tensor& tensor : lent_) tensor.set_data(at::empty({0}, tensor.options()));
}

}  // namespace trireme::train
