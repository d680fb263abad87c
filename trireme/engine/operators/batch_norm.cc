#include "trireme/engine/operators/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "trireme/engine/operators/arguments.h"
#include "trireme/engine/operators/once_differentiable.h"
#include "trireme/kernels/normalization/batch_norm.h"

namespace trireme::operators {
namespace {

using internal::Expect;
using internal::given;
using MaybeTensor = std::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

float* mutable_floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

const float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

/// The layout in which the kernel gets all tensors of a call.
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

/// What forward makes beside its output.
struct Statistics {
  at::Tensor mean, inverse_deviation, variance, count;

  explicit Statistics(std::int64_t channels)
      : mean(at::empty({channels}, at::kFloat)),
        inverse_deviation(at::empty_like(mean)),
        variance(at::empty_like(mean)),
        count(at::empty({1}, at::kDouble)) {}
};

kernels::BatchNormStatistics pointers(const at::Tensor& mean, const at::Tensor& inverse_deviation,
                                      const at::Tensor& count) {
  return {mean.mutable_data_ptr<float>(), inverse_deviation.mutable_data_ptr<float>(),
          count.mutable_data_ptr<double>()};
}

/// As ATen rounds it, which commits of recorded statistics repeat.
void move_running(const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
                  const Statistics& now) {
  const at::NoGradGuard no_grad;
  if (running_mean) {
    running_mean->copy_(now.mean.mul(momentum).add_(running_mean->mul(1 - momentum)));
  }
  if (!running_var) return;
  const double count = now.count.item<double>();
  const at::Tensor unbiased = now.variance.mul(count / (count - 1));
  running_var->copy_(running_var->mul(1 - momentum).add_(unbiased, momentum));
}

class TrainingBatchNorm : public torch::autograd::Function<TrainingBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const MaybeTensor& residual, const MaybeTensor& running_mean,
                            const MaybeTensor& running_var, double momentum, double epsilon,
                            bool has_relu) {
    const at::MemoryFormat format = format_of(input);
    const at::Tensor x = input.contiguous(format);
    const at::Tensor gamma = weight.contiguous(), beta = bias.contiguous();
    const at::Tensor added = residual ? residual->contiguous(format) : at::Tensor();
    const kernels::BatchNormShape shape = shape_of(x, format);
    const Statistics made(shape.channels);
    const at::Tensor y = at::empty_like(x);
    at::Tensor mask;
    // One word at least: without elements it would have no address.
    if (has_relu) {
      mask = at::empty({std::max<std::int64_t>(kernels::mask_words(shape), 1)}, at::kShort);
    }
    kernels::batch_norm_forward(
        {.epsilon = static_cast<float>(epsilon), .has_relu = has_relu}, shape,
        {.x = floats(x),
         .residual = floats(added),
         .gamma = floats(gamma),
         .beta = floats(beta),
         .y = mutable_floats(y),
         .mask = has_relu ? static_cast<std::uint16_t*>(mask.mutable_data_ptr()) : nullptr,
         .variance = mutable_floats(made.variance),
         .statistics = pointers(made.mean, made.inverse_deviation, made.count)},
        nullptr, internal::on_torch_threads);
    move_running(running_mean, running_var, momentum, made);
    context->save_for_backward({x, gamma, made.mean, made.inverse_deviation, made.count, mask});
    context->saved_data["has_residual"] = residual.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gamma = saved[1], &mask = saved[5];
    const at::MemoryFormat format = format_of(x);
    const at::Tensor dy = gradients[0].contiguous(format);
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor dgamma = at::empty_like(gamma), dbeta = at::empty_like(gamma);
    at::Tensor dresidual;
    if (context->saved_data["has_residual"].toBool()) {
      dresidual = mask.defined() ? at::empty_like(x) : dy;
    }
    kernels::batch_norm_backward(
        shape_of(x, format),
        {.gradient_y = floats(dy),
         .x = floats(x),
         .gamma = floats(gamma),
         .mask =
             mask.defined() ? static_cast<const std::uint16_t*>(mask.const_data_ptr()) : nullptr,
         .statistics = pointers(saved[2], saved[3], saved[4]),
         .gradient_x = mutable_floats(dx),
         .gradient_residual = mask.defined() ? mutable_floats(dresidual) : nullptr,
         .gradient_gamma = mutable_floats(dgamma),
         .gradient_beta = mutable_floats(dbeta)},
        nullptr, internal::on_torch_threads);
    return internal::once_differentiable("batch_norm",
                                         {dx, dgamma, dbeta, dresidual, {}, {}, {}, {}, {}});
  }
};

struct Arguments {
  const at::Tensor& input;
  const MaybeTensor &weight, &bias, &running_mean, &running_var, &residual;
};

void check(const Expect& expect, const Arguments& arguments) {
  const at::Tensor& input = arguments.input;
  expect.dtype("input", input, {at::kFloat});
  if (input.dim() < 2) expect.dims("input", input, 2);
  const auto of_channels = [&](const char* name, const MaybeTensor& tensor) {
    if (!tensor) return;
    expect.dtype(name, *tensor, {at::kFloat});
    expect.shape(name, *tensor, {input.size(1)});
  };
  of_channels("weight", arguments.weight);
  of_channels("bias", arguments.bias);
  of_channels("running_mean", arguments.running_mean);
  of_channels("running_var", arguments.running_var);
  if (!arguments.residual) return;
  expect.dtype("residual", *arguments.residual, {at::kFloat});
  expect.shape("residual", *arguments.residual, input.sizes());
}

at::Tensor in_evaluation(const Expect& expect, const Arguments& arguments, double epsilon,
                         bool has_relu) {
  if (!arguments.running_mean || !arguments.running_var) {
    expect.fail("evaluation needs running_mean and running_var; give them, or train");
  }
  at::Tensor y =
      at::batch_norm(arguments.input, arguments.weight, arguments.bias, arguments.running_mean,
                     arguments.running_var, false, 0, epsilon, false);
  if (arguments.residual) y = y.add(*arguments.residual);
  return has_relu ? at::relu(y) : y;
}

/// The first arguments are those of aten::batch_norm: recordings know running statistics by place.
at::Tensor run_batch_norm(const at::Tensor& input, const MaybeTensor& weight,
                          const MaybeTensor& bias, const MaybeTensor& running_mean,
                          const MaybeTensor& running_var, bool training, double momentum,
                          double epsilon, const MaybeTensor& residual, bool relu) {
  const Arguments arguments{input, weight, bias, running_mean, running_var, residual};
  const Expect expect("batch_norm");
  check(expect, arguments);
  if (!training) return in_evaluation(expect, arguments, epsilon, relu);
  const std::int64_t channels = input.size(1);
  return TrainingBatchNorm::apply(input, weight ? *weight : at::ones({channels}, at::kFloat),
                                  bias ? *bias : at::zeros({channels}, at::kFloat), residual,
                                  running_mean, running_var, momentum, epsilon, relu);
}

/// Samples as further channels; where channels are last, one sample after the other.
at::Tensor run_instance_norm(const at::Tensor& input, const MaybeTensor& weight,
                             const MaybeTensor& bias, double epsilon, bool relu) {
  const Expect expect("instance_norm");
  check(expect, {input, weight, bias, {}, {}, {}});
  if (input.numel() == 0) return input.clone();
  const auto normalise = [&](const at::Tensor& x, const MaybeTensor& gamma,
                             const MaybeTensor& beta) {
    return run_batch_norm(x, gamma, beta, {}, {}, true, 0, epsilon, {}, relu);
  };
  if (format_of(input) != at::MemoryFormat::Contiguous) {
    std::vector<at::Tensor> samples;
    for (const at::Tensor& x : input.split(1)) samples.push_back(normalise(x, weight, bias));
    return at::cat(samples);
  }
  const std::int64_t batch = input.size(0);
  const auto for_all = [&](const MaybeTensor& tensor) {
    return tensor ? MaybeTensor(tensor->repeat({batch})) : std::nullopt;
  };
  std::vector<std::int64_t> together = input.sizes().vec();
  together[0] = 1;
  together[1] = batch * input.size(1);
  return normalise(input.reshape(together), for_all(weight), for_all(bias)).view(input.sizes());
}

// Like aten::batch_norm's, the schema does not say that training writes the running statistics: it
// cannot say that evaluation does not.
TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, "
      "Tensor? residual=None, bool relu=False) -> Tensor");
  library.def(
      "instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps=1e-05, "
      "bool relu=False) -> Tensor");
  library.impl("batch_norm", run_batch_norm);
  library.impl("instance_norm", run_instance_norm);
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                      const BatchNormOptions& options) {
  static const auto op = internal::find_operator<decltype(run_batch_norm)>("trireme::batch_norm");
  return op.call(input, given(tensors.weight), given(tensors.bias), given(tensors.running_mean),
                 given(tensors.running_var), options.is_training, options.momentum, options.epsilon,
                 given(options.residual), options.has_relu);
}

at::Tensor instance_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         double epsilon, bool has_relu) {
  static const auto op =
      internal::find_operator<decltype(run_instance_norm)>("trireme::instance_norm");
  return op.call(input, given(weight), given(bias), epsilon, has_relu);
}

}  // namespace trireme::operators
