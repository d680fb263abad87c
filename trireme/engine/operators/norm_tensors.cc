#include "trireme/engine/operators/norm_tensors.h"

#include <ATen/Functions.h>

namespace trireme::operators::internal {

float* mutable_floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

const float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

at::MemoryFormat format_of(const at::Tensor& input) {
  if (input.dim() == 2 || input.is_contiguous()) return at::MemoryFormat::Contiguous;
  for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d}) {
    const std::int64_t dims = format == at::MemoryFormat::ChannelsLast ? 4 : 5;
    if (input.dim() == dims && input.is_contiguous(format)) return format;
  }
  return at::MemoryFormat::Contiguous;
}

kernels::BatchNormShape shape_of(const at::Tensor& input, at::MemoryFormat format) {
  const std::int64_t batch = input.size(0), channels = input.size(1);
  return {.batch = batch,
          .channels = channels,
          .spatial = c10::multiply_integers(input.sizes().slice(2)),
          .has_channels_last = format != at::MemoryFormat::Contiguous || input.dim() == 2};
}

ForwardStatistics::ForwardStatistics(std::int64_t channels, std::int64_t groups)
    : mean(at::empty({groups * channels}, at::kFloat)),
      inverse_deviation(at::empty_like(mean)),
      variance(at::empty_like(mean)),
      count(at::empty({groups}, at::kDouble)) {}

kernels::BatchNormStatistics pointers(const at::Tensor& mean, const at::Tensor& inverse_deviation,
                                      const at::Tensor& count) {
  return {mean.mutable_data_ptr<float>(), inverse_deviation.mutable_data_ptr<float>(),
          count.mutable_data_ptr<double>()};
}

void check(const Expect& expect, const NormArguments& arguments) {
  const at::Tensor& input = arguments.input;
  expect.dtype("input", input, {at::kFloat, at::kBFloat16});
  if (input.dim() < 2) expect.dims("input", input, 2);
  const auto of_channels = [&](const char* name, const MaybeTensor& tensor) {
    if (!tensor) return;
    expect.dtype(name, *tensor, {at::kFloat});
    expect.shape(name, *tensor, {input.sym_size(1)});
  };
  of_channels("weight", arguments.weight);
  of_channels("bias", arguments.bias);
  of_channels("running_mean", arguments.running_mean);
  of_channels("running_var", arguments.running_var);
  if (!arguments.residual) return;
  expect.dtype("residual", *arguments.residual, {input.scalar_type()});
  expect.shape("residual", *arguments.residual, input.sym_sizes());
}

at::ScalarType type_under_autocast(const at::Tensor& input) {
  return input.scalar_type() == at::kHalf ? at::kFloat : input.scalar_type();
}

MaybeTensor cast(const MaybeTensor& tensor, at::ScalarType type) {
  return tensor ? MaybeTensor(tensor->to(type)) : MaybeTensor();
}

}  // namespace trireme::operators::internal
