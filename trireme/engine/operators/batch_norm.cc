#include "trireme/engine/operators/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/engine/operators/norm_tensors.h"

namespace trireme::operators {
namespace {

using internal::Expect;
using internal::floats;
using internal::format_of;
using internal::ForwardStatistics;
using internal::given;
using internal::MaybeTensor;
using internal::mutable_floats;
using internal::NormArguments;
using internal::pointers;
using internal::shape_of;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// As ATen rounds it, which commits of recorded statistics repeat.
void move_running(const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
                  const ForwardStatistics& now) {
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
    const ForwardStatistics made(shape.channels);
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

at::Tensor in_evaluation(const Expect& expect, const NormArguments& arguments, double epsilon,
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
  const NormArguments arguments{input, weight, bias, running_mean, running_var, residual};
  const Expect expect("batch_norm");
  internal::check(expect, arguments);
  if (!training) return in_evaluation(expect, arguments, epsilon, relu);
  const std::int64_t channels = input.size(1);
  return TrainingBatchNorm::apply(input, weight ? *weight : at::ones({channels}, at::kFloat),
                                  bias ? *bias : at::zeros({channels}, at::kFloat), residual,
                                  running_mean, running_var, momentum, epsilon, relu);
}

// Like aten::batch_norm's, the schema does not say that training writes the running statistics: it
// cannot say that evaluation does not.
TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, "
      "Tensor? residual=None, bool relu=False) -> Tensor");
  library.impl("batch_norm", run_batch_norm);
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                      const FusedBatchNormOptions& options) {
  static const auto op = internal::find_operator<decltype(run_batch_norm)>("trireme::batch_norm");
  return op.call(input, given(tensors.weight), given(tensors.bias), given(tensors.running_mean),
                 given(tensors.running_var), options.is_training, options.momentum, options.epsilon,
                 given(options.residual), options.has_relu);
}

}  // namespace trireme::operators
