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

/// The elements of a tensor of f32 or bf16 as kernels have them; null of an undefined one.
template <typename T>
T* mutable_elements(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}
template <typename T>
const T* elements(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr()) : nullptr;
}

/// Calls `run(T())` with the kernels' type T of a tensor of f32 or bf16.
template <typename Run>
void with_type_of(const at::Tensor& tensor, const Run& run) {
  if (tensor.scalar_type() == at::kBFloat16) return run(kernels::Bf16());
  run(float());
}

/// The layout in which the kernel gets all tensors of a call.
at::MemoryFormat format_of(const at::Tensor& input);

/// Of a tensor in that layout.
kernels::BatchNormShape shape_of(const at::Tensor& input, at::MemoryFormat format);

/// What forward makes beside its output, for each group of samples.
struct ForwardStatistics {
  at::Tensor mean, inverse_deviation, variance, count;

  ForwardStatistics(std::int64_t channels, std::int64_t groups);
};

kernels::BatchNormStatistics pointers(const at::Tensor& mean, const at::Tensor& inverse_deviation,
                                      const at::Tensor& count);

/// Of a norm: one f32 value a channel but for the input and what has its shape.
struct NormArguments {
  const at::Tensor& input;
  const MaybeTensor &weight, &bias, &running_mean, &running_var, &residual;
};

/// The input is f32 or bf16, a residual as the input.
void check(const Expect& expect, const NormArguments& arguments);

/// What autocast makes of a norm's input. One of bf16 stays: as f32 it would take twice the memory and time.
at::ScalarType type_under_autocast(const at::Tensor& input);

MaybeTensor cast(const MaybeTensor& tensor, at::ScalarType type);

}  // namespace trireme::operators::internal
