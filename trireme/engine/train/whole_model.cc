#include "trireme/engine/train/whole_model.h"

#include <ATen/Functions.h>

#include "trireme/engine/parameters/sharded_bucket.h"

namespace trireme::train {

WholeModel::WholeModel(const record::Recording& recording) {
  for (const graph::Parameter& parameter : recording.graph.parameters) {
    std::vector<std::int64_t> shape;
    for (const auto& size : recording.graph.values[parameter.value].shape) {
      shape.push_back(size.at(0));
    }
    at::Tensor tensor = recording.tensors[parameter.value];
    if (tensor.sizes() == shape && parameters::has_memory(tensor)) continue;
    lent_.push_back({tensor, tensor.tensor_data()});
    tensor.set_data(at::zeros(shape, tensor.options()));
  }
}

WholeModel::~WholeModel() {
  for (const Lent& lent : lent_) lent.parameter.set_data(lent.before);
}

}  // namespace trireme::train
