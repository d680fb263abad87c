#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

namespace trireme::recipes::t5 {

/// Outputs of a projection that were drawn alike.
struct ProjectionPart {
  std::int64_t outputs = 0;
  double stddev = 1;  ///< Of the initial weights, normal with mean 0.
};

/// y = x W^T, without bias. Several projections of the same x are the parts of one: one matrix
/// product instead of several, and one sum less per part in the backward.
class ProjectionImpl : public torch::nn::Module {
 public:
  ProjectionImpl(std::int64_t inputs, const std::vector<ProjectionPart>& parts);

  /// x   [.., inputs] -> [.., sum of the parts' outputs].
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight;  ///< [outputs, inputs], the parts one below the other.
};
TORCH_MODULE(Projection);

}  // namespace trireme::recipes::t5
