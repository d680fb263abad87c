#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace trireme::recipes::t5 {

/// y = weight * x / sqrt(mean(x^2) + epsilon) over the last dimension: nothing is subtracted or
/// added.
///
/// Source   Zhang and Sennrich, "Root mean square layer normalization", arXiv 1910.07467, eq. 4.
class NormImpl : public torch::nn::Module {
 public:
  NormImpl(std::int64_t channels, double epsilon);

  /// x   [.., channels] -> the same shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight;  ///< [channels], ones at first.

 private:
  double epsilon_;
};
TORCH_MODULE(Norm);

}  // namespace trireme::recipes::t5
