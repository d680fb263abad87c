#include "tests/graphs/graph_builder.h"

#include <cstring>

namespace trireme::graph::testing {
namespace {

std::vector<Size> natural_strides(const std::vector<Size>& shape) {
  std::vector<Size> strides(shape.size());
  Size step{0, 1};
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    // Only the first dimension grows with the batch, so the product stays affine.
    step = {step.per_sample * shape[i].fixed + step.fixed * shape[i].per_sample,
            step.fixed * shape[i].fixed};
  }
  return strides;
}

}  // namespace

std::vector<Size> GraphBuilder::fixed(const std::vector<std::int64_t>& dims) {
  std::vector<Size> shape;
  for (const std::int64_t dim : dims) shape.push_back({0, dim});
  return shape;
}

std::vector<Size> GraphBuilder::batch(const std::vector<std::int64_t>& dims) {
  std::vector<Size> shape = fixed(dims);
  shape.insert(shape.begin(), Size{1, 0});
  return shape;
}

ValueId GraphBuilder::add_value(ValueSource source, const std::vector<Size>& shape,
                                bool requires_grad) {
  Value value;
  value.source = source;
  value.shape = shape;
  value.strides = natural_strides(shape);
  value.requires_grad = requires_grad;
  value.storage_id = next_storage_++;
  graph_.values.push_back(std::move(value));
  return static_cast<ValueId>(graph_.values.size()) - 1;
}

ValueId GraphBuilder::input(const std::string& name, const std::vector<std::int64_t>& shape) {
  const ValueId id = add_value(ValueSource::kInput, batch(shape), false);
  graph_.inputs.push_back({name, id, 0});
  return id;
}

ValueId GraphBuilder::step_scalar(const std::string& name) {
  const ValueId id = add_value(ValueSource::kStepScalar, {}, false);
  graph_.inputs.push_back({name, id, -1});
  return id;
}

ValueId GraphBuilder::parameter(const std::string& name, const std::vector<std::int64_t>& shape) {
  const ValueId id = add_value(ValueSource::kParameter, fixed(shape), true);
  graph_.parameters.push_back({name, {}, id});
  return id;
}

ValueId GraphBuilder::frozen(const std::string& name, const std::vector<std::int64_t>& shape) {
  const ValueId id = parameter(name, shape);
  graph_.values[id].requires_grad = false;
  return id;
}

ValueId GraphBuilder::buffer(const std::string& name, const std::vector<std::int64_t>& shape,
                             BufferPolicy policy) {
  const ValueId id = add_value(ValueSource::kBuffer, fixed(shape), false);
  graph_.buffers.push_back({name, {}, id, policy});
  return id;
}

ValueId GraphBuilder::constant(const std::vector<float>& data) {
  const ValueId id =
      add_value(ValueSource::kConstant, fixed({static_cast<std::int64_t>(data.size())}), false);
  ConstantTensor constant{id, std::vector<std::byte>(data.size() * sizeof(float))};
  if (!data.empty()) std::memcpy(constant.bytes.data(), data.data(), constant.bytes.size());
  graph_.constants.push_back(std::move(constant));
  return id;
}

ValueId GraphBuilder::node(const std::string& op, const std::vector<ValueId>& inputs,
                           const std::vector<Size>& shape, const NodeOptions& options) {
  Node node;
  node.id = graph_.nodes.empty() ? 0 : graph_.nodes.back().id + 1;
  node.name = options.name.empty() ? op : options.name;
  node.op = op == "opaque" ? op : "aten::" + op;
  node.overload = options.overload;
  node.writes = options.writes;
  node.flags = options.flags;
  bool requires_grad = false;
  for (const ValueId input : inputs) {
    node.inputs.push_back({ValueRef{input}});
    requires_grad =
        requires_grad || (graph_.values[input].requires_grad && options.flags.grad_mode);
  }
  node.inputs.insert(node.inputs.end(), options.constants.begin(), options.constants.end());
  const ValueId output = add_value(ValueSource::kNode, shape, requires_grad);
  graph_.values[output].producer = node.id;
  if (options.view_of >= 0) {
    graph_.values[output].storage_id = graph_.values[options.view_of].storage_id;
    node.flags.view = true;
  }
  node.outputs = {output};
  node.output_lists = {-1};
  graph_.nodes.push_back(std::move(node));
  return output;
}

ValueId GraphBuilder::write(const std::string& op, const std::vector<ValueId>& inputs,
                            const NodeOptions& options) {
  node(op, inputs, {}, options);
  graph_.values.pop_back();
  graph_.nodes.back().outputs = {inputs.front()};
  graph_.nodes.back().writes = {inputs.front()};
  return inputs.front();
}

ValueId GraphBuilder::loss(ValueId x, const std::string& name) {
  const ValueId value = node("mean", {x}, {}, {.name = name});
  graph_.losses.push_back({name, value, std::nullopt, 1});
  return value;
}

}  // namespace trireme::graph::testing
