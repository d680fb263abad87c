#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "trireme/engine/operators/batch_norm.h"

namespace trireme::vision {

// Dims: B batch, C channels, H height, W width.

/// Batch norm with what follows it in a network of convolutions, by one operator (operators/batch_norm.h):
/// fewer passes over memory, one bit an element kept for ReLU. The plain form calls torch's operators one
/// after the other: the same numbers but for rounding. Tensors are those of torch::nn::BatchNorm2d, without
/// its count of batches.
class FusedNormImpl : public torch::nn::Module {
 public:
  /// group_samples   FusedBatchNormOptions's; of the fused form alone.
  FusedNormImpl(std::int64_t channels, bool is_fused, std::int64_t group_samples = 0)
      : is_fused_(is_fused), group_samples_(group_samples) {
    tensors_.weight = register_parameter("weight", torch::ones(channels));
    tensors_.bias = register_parameter("bias", torch::zeros(channels));
    tensors_.running_mean = register_buffer("running_mean", torch::zeros(channels));
    tensors_.running_var = register_buffer("running_var", torch::ones(channels));
  }

  /// f32 [B, C, H, W] -> the same. Errors of operators::batch_norm.
  torch::Tensor forward(const torch::Tensor& x_BCHW) { return run(x_BCHW, {}, false); }

  /// relu(norm(x)).
  torch::Tensor relu(const torch::Tensor& x_BCHW) { return run(x_BCHW, {}, true); }

  /// relu(norm(x) + residual), both of one shape.
  torch::Tensor add_relu(const torch::Tensor& x_BCHW, const torch::Tensor& residual_BCHW) {
    return run(x_BCHW, residual_BCHW, true);
  }

  /// The scale begins with 0, so that a block begins as its shortcut.
  void begin_with_zero() { torch::NoGradGuard(), tensors_.weight.zero_(); }

 private:
  static constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

  torch::Tensor run(const torch::Tensor& x, const torch::Tensor& residual, bool has_relu) {
    if (is_fused_) {
      return operators::batch_norm(x, tensors_,
                                   {.is_training = is_training(),
                                    .momentum = kMomentum,
                                    .epsilon = kEpsilon,
                                    .residual = residual,
                                    .has_relu = has_relu,
                                    .group_samples = group_samples_});
    }
    auto y = torch::batch_norm(x, tensors_.weight, tensors_.bias, tensors_.running_mean,
                               tensors_.running_var, is_training(), kMomentum, kEpsilon,
                               /*cudnn_enabled=*/false);
    if (residual.defined()) y = y + residual;
    return has_relu ? torch::relu(y) : y;
  }

  bool is_fused_;
  std::int64_t group_samples_;
  operators::BatchNormTensors tensors_;
};
TORCH_MODULE(FusedNorm);

}  // namespace trireme::vision
