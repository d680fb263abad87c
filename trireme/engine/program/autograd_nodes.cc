#include "trireme/engine/program/autograd_nodes.h"

#include <torch/csrc/autograd/variable.h>

namespace trireme::program {

at::Tensor make_stand_in(const at::Tensor& tensor, const NodePtr& node) {
  at::Tensor stand_in = tensor.detach();
  const std::uint32_t input = node->add_input_metadata(stand_in);
  torch::autograd::impl::set_gradient_edge(stand_in, torch::autograd::Edge(node, input));
  return stand_in;
}

torch::autograd::variable_list SiteNode::apply(torch::autograd::variable_list&& gradients) {
  if (gradients[0].defined()) sink_.accept(site_, gradients[0]);
  return {};
}

torch::autograd::variable_list CaptureNode::apply(torch::autograd::variable_list&& gradients) {
  gradient_ = std::move(gradients[0]);
  return {};
}

}  // namespace trireme::program
