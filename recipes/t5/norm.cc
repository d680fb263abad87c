#include "recipes/t5/norm.h"

#include <torch/types.h>

namespace trireme::recipes::t5 {

NormImpl::NormImpl(std::int64_t channels, double epsilon)
    : weight(register_parameter("weight", torch::ones({channels}))), epsilon_(epsilon) {}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  return torch::rms_norm(x, weight.sizes(), weight, epsilon_);
}

}  // namespace trireme::recipes::t5
