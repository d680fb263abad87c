#pragma once

#include <ATen/core/Tensor.h>

namespace trireme::operators {

/// Weights and buffers of a batch norm, f32 [C] each; undefined ones are as in torch: 1, 0, and no
/// running statistics.
struct BatchNormTensors {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;  ///< Written in training.
};

struct FusedBatchNormOptions {
  bool is_training = true;
  double momentum = 0.1;
  double epsilon = 1e-5;
  at::Tensor residual = {};  ///< Added after the norm; of the input's shape and type.
  bool has_relu = false;     ///< After that.

  /// Samples that are normalised by statistics of their own, in training: each so many of the input, from the first on; the last
  /// group has what is left. 0: all of the input, one group. Groups are parts of the input, so of one microbatch on one rank.
  /// Running statistics take the mean of the groups', each by its elements.
  std::int64_t group_samples = 0;
};

/// relu(batch_norm(input) + residual) in as few passes as there can be, keeping 1 bit an element
/// for ReLU; formula, rounding and cost in kernels/normalization/batch_norm.h. In evaluation it is
/// torch's batch_norm with the running statistics. Recorded statistics are committed as those of
/// torch's batch norm are (docs/concepts/equality.md).
///
/// input    f32 or bf16 [N, C, ...], contiguous or channels last; anything else is copied.
/// Returns  in the type and layout of the input. Under autocast an f16 input is made f32, the residual as the input.
/// Errors   kInvalidArgument for other types and shapes, fewer than 2 elements of a channel in a group.
at::Tensor batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                      const FusedBatchNormOptions& options = {});

/// The same with the statistics of each sample alone: relu(instance_norm(input)).
///
/// input    f32 or bf16 [N, C, ...], contiguous or channels last; anything else is copied.
/// weight, bias   f32 [C]; undefined: 1 and 0.
/// Errors   as above.
at::Tensor instance_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         double epsilon = 1e-5, bool has_relu = false);

}  // namespace trireme::operators
