#include "trireme/engine/program/opaque_replay.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "trireme/engine/program/autograd_nodes.h"

namespace trireme::program {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

/// Backward of an opaque call: runs the inner graph and hands on what reaches its leaves.
class OpaqueNode : public torch::autograd::Node {
 public:
  OpaqueNode(edge_list&& next, edge_list roots, edge_list leaves)
      : Node(std::move(next)), roots_(std::move(roots)), leaves_(std::move(leaves)) {}

  variable_list apply(variable_list&& gradients) override {
    edge_list roots;
    variable_list seeds;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      roots.push_back(roots_[i]);
      seeds.push_back(std::move(gradients[i]));
    }
    variable_list result(leaves_.size());
    edge_list wanted;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!leaves_[i].is_valid()) continue;
      wanted.push_back(leaves_[i]);
      positions.push_back(i);
    }
    if (roots.empty() || wanted.empty()) return result;
    variable_list captured = torch::autograd::Engine::get_default_engine().execute(
        roots, seeds, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false,
        wanted);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      result[positions[i]] = std::move(captured[i]);
    }
    return result;
  }

  void release_variables() override {
    roots_.clear();
    leaves_.clear();
  }

 private:
  edge_list roots_;
  edge_list leaves_;
};

/// The inner graph's end at `tensor`; invalid where no gradient is wanted.
Edge leaf_edge(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor)
                                                    : Edge();
}

}  // namespace

TensorList replay_opaque(const OpaqueFunction& function, const TensorList& inputs,
                         const TensorList& stand_ins) {
  if (!at::GradMode::is_enabled()) return function.call(inputs);
  TensorList inner;
  edge_list leaves, next;
  for (const at::Tensor& input : inputs) {
    inner.push_back(input.defined() ? input.detach().requires_grad_(input.requires_grad()) : input);
    leaves.push_back(leaf_edge(inner.back()));
    next.push_back(leaf_edge(input));
  }
  for (std::size_t i = 0; i < stand_ins.size(); ++i) {
    leaves.push_back(leaf_edge(function.parameters[i].tensor));
    next.push_back(leaf_edge(stand_ins[i]));
  }
  const TensorList made = function.call(inner);
  edge_list roots;
  TensorList outputs;
  for (const at::Tensor& tensor : made) {
    outputs.push_back(tensor.defined() ? tensor.detach() : tensor);
    if (leaf_edge(tensor).is_valid()) roots.push_back(leaf_edge(tensor));
  }
  const NodePtr node = make_node<OpaqueNode>(std::move(next), std::move(roots), std::move(leaves));
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!leaf_edge(made[i]).is_valid()) continue;
    const std::uint32_t input = node->add_input_metadata(outputs[i]);
    torch::autograd::impl::set_gradient_edge(outputs[i], Edge(node, input));
  }
  return outputs;
}

}  // namespace trireme::program
