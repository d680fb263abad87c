#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/engine/record/model.h"

namespace trireme {

using TensorList = std::vector<at::Tensor>;

namespace record {

/// A registered callable that runs eagerly inside: one node of the graph, never cut.
struct OpaqueFunction {
  std::string name;
  std::function<TensorList(const TensorList&)> call;
  std::vector<NamedTensor> parameters;  ///< Tensors that it uses beyond its inputs.
  std::vector<NamedTensor> buffers;     ///< Its state; written at once, in microbatch order.
};

/// One call of an opaque function, seen by an observer.
struct OpaqueCall {
  const std::shared_ptr<const OpaqueFunction>& function;
  const TensorList& inputs;
  const TensorList& outputs;  ///< Empty before the call.
};

}  // namespace record

/// Marks code that cannot be recorded (its control flow depends on data) as one opaque node.
///
/// Calling it runs the function; under recording, its operators are not looked at. Its inputs and
/// outputs are dense tensors; an output must not share memory with an input (kInvalidArgument).
/// Random operators inside draw from the node's stream.
class Opaque {
 public:
  explicit Opaque(std::shared_ptr<const record::OpaqueFunction> function);
  TensorList operator()(const TensorList& inputs) const;

 private:
  std::shared_ptr<const record::OpaqueFunction> function_;
};

/// An opaque node out of a plain function without parameters. `name` is unique in the model.
Opaque opaque(std::string name, std::function<TensorList(const TensorList&)> function);

/// An opaque node out of a module: anything with named_parameters(), named_buffers() and
/// `TensorList forward(const TensorList&)`, held by a std::shared_ptr (or a module holder's ptr()).
template <typename Module>
Opaque opaque(std::string name, std::shared_ptr<Module> module) {
  auto function = std::make_shared<record::OpaqueFunction>();
  function->name = std::move(name);
  for (const auto& item : module->named_parameters()) {
    function->parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : module->named_buffers()) {
    function->buffers.push_back({item.key(), item.value()});
  }
  function->call = [module = std::move(module)](const TensorList& inputs) {
    return module->forward(inputs);
  };
  return Opaque(std::move(function));
}

}  // namespace trireme
