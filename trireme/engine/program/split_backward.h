#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "trireme/engine/program/stage_autograd.h"

namespace trireme::program {

/// Of a backward whose part that leads to received values has run: what is left, which leads to parameters.
struct WeightWork {
  /// A function whose gradient of a parameter waits: a matrix product, a convolution.
  struct Function {
    torch::autograd::edge_list roots;  ///< Its results whose gradients are known.
    torch::autograd::variable_list gradients;
    torch::autograd::edge_list sites;  ///< Where its backward ends, SiteNodes.
  };
  /// A use site whose gradient is complete.
  struct Site {
    NodePtr node;
    at::Tensor gradient;
  };

  /// Starts that lead to parameters alone, with their gradients.
  torch::autograd::edge_list roots;
  torch::autograd::variable_list gradients;
  std::vector<Function> functions;
  std::vector<Site> sites;
  /// Of a replayed backward in one part: gradients by use site.
  std::vector<std::pair<int, at::Tensor>> taken;
};

/// Runs of a backward what leads to `leaves`, the edges of received values, and returns their gradients, undefined
/// where it does not reach one. What costs much and leads to parameters alone is left in `work`: of matrix products and
/// convolutions the gradient of the parameter. Other parameters' gradients are computed on the way and kept.
///
/// The gradients have the bits of run_backward: the same functions get the same gradients in the same order.
///
/// Errors   FailedFunction.
/// Cost     of a walk over the functions, beside the backward. Functions that are left keep what they saved, others let
///          it go as they run.
torch::autograd::variable_list run_input_backward(const torch::autograd::edge_list& roots,
                                                  const torch::autograd::variable_list& gradients,
                                                  const torch::autograd::edge_list& leaves,
                                                  WeightWork& work);

/// Runs the rest: every site's sink gets its gradient, once. Errors   FailedFunction.
void run_weight_backward(WeightWork work);

}  // namespace trireme::program
