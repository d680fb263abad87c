#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "recipes/t5/config.h"
#include "recipes/t5/projection.h"

namespace trireme::recipes::t5 {

/// Two projections with a bend between them, at each position:
///
///     v1.0   relu(x A) B
///     v1.1   (gelu(x A) * x A') B     gelu by its tanh form; A and A' are parts of one projection
///
/// Source   v1.1: Shazeer, "GLU variants improve transformer", arXiv 2002.05202, eq. 6.
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const Config& config);

  /// x   [B, T, d_model] -> the same shape.
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Config config_;
  Projection input_{nullptr}, output_{nullptr};
};
TORCH_MODULE(FeedForward);

}  // namespace trireme::recipes::t5
