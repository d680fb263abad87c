#include "trireme/engine/record/opaque_leaves.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <unordered_set>
#include <vector>

namespace trireme::record {

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
