#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace trireme::program {

/// Owner of an autograd node: an intrusive_ptr from torch 2.13 on, a shared_ptr before.
using NodePtr = decltype(torch::autograd::Edge::function);

template <typename T, typename... Args>
NodePtr make_node(Args&&... args) {
  auto* node = new T(std::forward<Args>(args)...);
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>) {
    return NodePtr(node);
  } else {
    return NodePtr(c10::intrusive_ptr<T>::unsafe_steal_from_new(node));
  }
}

/// Takes the gradient that leaves a parameter use site, once per backward that reaches it.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// site       index in graph::use_sites of the graph.
  /// gradient   of the parameter's shape; any strides; may be sparse. Valid during the call.
  /// Called by the thread that runs the backward, during it.
  virtual void accept(int site, const at::Tensor& gradient) = 0;
};

/// A tensor that stands for `tensor` in a stage: same memory, its gradient goes to `node` alone.
at::Tensor make_stand_in(const at::Tensor& tensor, const NodePtr& node);

/// End of the backward at a use site: hands the gradient to a sink. Runs as soon as the gradient is
/// complete, as torch's own accumulation does.
class SiteNode : public torch::autograd::Node {
 public:
  SiteNode(GradientSink& sink, int site)
      : Node(std::numeric_limits<std::uint64_t>::max()), sink_(sink), site_(site) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

 private:
  GradientSink& sink_;
  int site_;
};

/// End of the backward at a received value: keeps the gradient as the backward made it.
class CaptureNode : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  /// Undefined where the backward did not reach the value.
  at::Tensor take() { return std::move(gradient_); }

 private:
  at::Tensor gradient_;
};

}  // namespace trireme::program
