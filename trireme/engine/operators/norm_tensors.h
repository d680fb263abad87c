#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/kernels/normalization/batch_norm.h"

namespace trireme::operators::internal {

using MaybeTensor = std::optional<at::Tensor>;

/// Null of an undefined tensor.
float* mutable_floats(const at::Tensor& tensor);
const float* floats(const at::Tensor& tensor);

/// The layout in which the kernel gets all tensors of a call.
at::MemoryFormat format_of(const at::Tensor& input);

/// Of a tensor in that layout.
kernels::BatchNormShape shape_of(const at::Tensor& input, at::MemoryFormat format);

/// What forward makes beside its output.
struct ForwardStatistics {
  at::Tensor mean, inverse_deviation, variance, count;

  explicit ForwardStatistics(std::int64_t channels);
};

kernels::BatchNormStatistics pointers(const at::Tensor& mean, const at::Tensor& inverse_deviation,
                                      const at::Tensor& count);

/// Of a norm: f32; one value a channel but for the input and what has its shape.
struct NormArguments {
  const at::Tensor& input;
  const MaybeTensor &weight, &bias, &running_mean, &running_var, &residual;
};

void check(const Expect& expect, const NormArguments& arguments);

}  // namespace trireme::operators::internal
