#include "trireme/engine/shard/shard_edges.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>

namespace trireme::shard {

using torch::autograd::Edge;
using torch::autograd::edge_list;

edge_list edges_of(const TensorList& tensors) {
  edge_list edges;
  for (const at::Tensor& tensor : tensors) {
    edges.push_back(tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor) : Edge());
  }
  return edges;
}

void join(at::Tensor& tensor, const program::NodePtr& node) {
  const std::uint32_t input = node->add_input_metadata(tensor);
  torch::autograd::impl::set_gradient_edge(tensor, Edge(node, input));
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()),
          static_cast<std::size_t>(tensor.nbytes())};
}

bool records_gradient(const TensorList& inputs) {
  return at::GradMode::is_enabled() && std::ranges::any_of(inputs, &at::Tensor::requires_grad);
}

}  // namespace trireme::shard
