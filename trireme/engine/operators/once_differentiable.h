#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace trireme::operators::internal {

/// What a backward without a backward of its own returns: with `create_graph` the gradients can be
/// used, and differentiating them is an error that names `op`; without, they come back unchanged.
std::vector<at::Tensor> once_differentiable(const char* op, std::vector<at::Tensor> gradients);

}  // namespace trireme::operators::internal
