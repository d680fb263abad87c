#include "trireme/engine/record/holes.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace trireme::record {

namespace {

constexpr std::array<std::string_view, 16> kMetadataOperators = {"aten::size",
                                                                 "aten::sym_size",
                                                                 "aten::stride",
                                                                 "aten::sym_stride",
                                                                 "aten::sym_numel",
                                                                 "aten::numel",
                                                                 "aten::dim",
                                                                 "aten::is_same_size",
                                                                 "aten::result_type",
                                                                 "aten::can_cast",
                                                                 "aten::is_complex",
                                                                 "aten::promote_types",
                                                                 "aten::is_floating_point",
                                                                 "aten::is_signed",
                                                                 "aten::is_inference",
                                                                 "aten::sym_storage_offset"};

struct NamedHole {
  std::string_view op;
  const char* reason;
};

/// Composites carry no tag for shapes that depend on data, so they are named.
constexpr std::array<NamedHole, 14> kHoles = {{
    {"aten::_has_compatible_shallow_copy_type", "set_data gives a tensor other memory unseen"},
    {"aten::set_data", "set_data gives a tensor other memory unseen"},
    {"aten::set_", "it gives a tensor other memory"},
    {"aten::_backward", "a backward runs inside forward"},
    {"aten::nonzero", kShapeFromData},
    {"aten::nonzero_numpy", kShapeFromData},
    {"aten::argwhere", kShapeFromData},
    {"aten::masked_select", kShapeFromData},
    {"aten::unique_consecutive", kShapeFromData},
    {"aten::unique_dim", kShapeFromData},
    {"aten::unique_dim_consecutive", kShapeFromData},
    {"aten::_unique2", kShapeFromData},
    {"aten::_unique", kShapeFromData},
    {"aten::bincount", kShapeFromData},
}};

bool is_tensor_like(const c10::IValue& value) {
  return value.isNone() || value.isTensor() || value.isTensorList();
}

}  // namespace

std::optional<std::string> hole_of_operator(const c10::OperatorName& name) {
  for (const NamedHole& hole : kHoles) {
    if (hole.op == name.name) return hole.reason;
  }
  const bool where_finds = name.name == "aten::where" && name.overload_name.empty();
  const bool repeats_by_data =
      name.name == "aten::repeat_interleave" && name.overload_name != "self_int";
  if (where_finds || repeats_by_data) return kShapeFromData;
  return std::nullopt;
}

bool picks_by_mask(const c10::OperatorName& name, c10::ArrayRef<const c10::IValue> inputs) {
  if (name.name != "aten::index" || inputs.size() < 2 || !inputs[1].isList()) return false;
  const auto indices = inputs[1].toListRef();
  return std::any_of(indices.begin(), indices.end(), [](const c10::IValue& index) {
    if (!index.isTensor() || !index.toTensor().defined()) return false;
    const at::ScalarType type = index.toTensor().scalar_type();
    return type == at::kBool || type == at::kByte;
  });
}

c10::ArrayRef<const c10::IValue> what_decides_shape(const c10::OperatorName& name,
                                                    c10::ArrayRef<const c10::IValue> inputs) {
  if (inputs.size() < 2) return inputs;
  const bool is_second = name.name == "aten::index" || name.name == "aten::masked_select" ||
                         (name.name == "aten::repeat_interleave" && inputs[1].isTensor());
  return is_second ? inputs.slice(1, 1) : inputs;
}

bool has_given_classes(const c10::OperatorName& name, c10::ArrayRef<const c10::IValue> inputs) {
  return name.name == "aten::one_hot" && inputs.size() == 2 && inputs[1].isInt() &&
         inputs[1].toInt() > 0;
}

OutputKind hole_of_outputs(const c10::OperatorName& name, const std::vector<c10::IValue>& outputs) {
  if (std::find(kMetadataOperators.begin(), kMetadataOperators.end(), name.name) !=
      kMetadataOperators.end()) {
    return OutputKind::kMetadata;
  }
  const bool all_tensors = std::all_of(outputs.begin(), outputs.end(), is_tensor_like);
  return all_tensors ? OutputKind::kTensors : OutputKind::kValueLeaves;
}

bool is_functorch_active() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(
      c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

namespace {

/// None where torch allows no more use of a view: its memory was written through another one.
std::decay_t<decltype(at::Tensor().grad_fn())> backward_of(const at::Tensor& tensor) {
  try {
    return tensor.grad_fn();
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace

bool has_hooks(const at::Tensor& tensor) {
  if (torch::autograd::impl::get_autograd_meta(tensor) == nullptr) return false;
  if (!torch::autograd::impl::hooks(tensor).empty()) return true;
  if (torch::autograd::impl::post_acc_grad_hooks(tensor)) return true;
  const auto node = backward_of(tensor);
  return node && (!node->pre_hooks().empty() || !node->post_hooks().empty() ||
                  !node->tensor_pre_hooks().empty());
}

bool takes_shape_alone(const std::string& op) {
  return op.starts_with("aten::new_") || (op.starts_with("aten::") && op.ends_with("_like"));
}

bool makes_uninitialised_memory(const std::string& op) {
  return op.starts_with("aten::empty") || op.starts_with("aten::new_empty");
}

std::vector<at::Tensor> unlisted_leaves(const OpaqueCall& call) {
  using torch::autograd::Node;
  std::unordered_set<const void*> listed;
  std::unordered_set<Node*> seen;  // starts with where the call's inputs come from
  for (const at::Tensor& input : call.inputs) {
    if (!input.defined()) continue;
    listed.insert(input.unsafeGetTensorImpl());
    if (const auto node = input.grad_fn()) seen.insert(node.get());
  }
  for (const NamedTensor& item : call.function->parameters) {
    listed.insert(item.tensor.unsafeGetTensorImpl());
  }
  std::vector<at::Tensor> leaves;
  std::vector<Node*> pending;
  const auto visit = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) pending.push_back(node);
  };
  for (const at::Tensor& output : call.outputs) {
    if (output.defined()) visit(output.grad_fn().get());
  }
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (leaf != nullptr && !listed.contains(leaf->variable.unsafeGetTensorImpl())) {
      leaves.push_back(leaf->variable);
    }
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
  return leaves;
}

}  // namespace trireme::record
