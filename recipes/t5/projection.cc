#include "recipes/t5/projection.h"

#include <torch/nn/functional/linear.h>
#include <torch/nn/init.h>

namespace trireme::recipes::t5 {

ProjectionImpl::ProjectionImpl(std::int64_t inputs, const std::vector<ProjectionPart>& parts) {
  std::int64_t outputs = 0;
  for (const ProjectionPart& part : parts) outputs += part.outputs;
  weight = register_parameter("weight", torch::empty({outputs, inputs}));
  std::int64_t begin = 0;
  for (const ProjectionPart& part : parts) {
    torch::nn::init::normal_(weight.detach().narrow(0, begin, part.outputs), 0, part.stddev);
    begin += part.outputs;
  }
}

torch::Tensor ProjectionImpl::forward(const torch::Tensor& x) {
  return torch::nn::functional::linear(x, weight);
}

}  // namespace trireme::recipes::t5
