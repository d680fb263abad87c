#include "trireme/engine/operators/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/engine/operators/norm_tensors.h"

namespace trireme::operators {
namespace {

using internal::elements;
using internal::Expect;
using internal::floats;
using internal::format_of;
using internal::ForwardStatistics;
using internal::given;
using internal::MaybeTensor;
using internal::mutable_elements;
using internal::mutable_floats;
using internal::NormArguments;
using internal::pointers;
using internal::shape_of;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What forward makes: y; mean and variance, which running statistics take; what backward needs.
using BatchMade =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
enum MadePart : std::uint8_t { kY, kMean, kVariance, kInverseDeviation, kCount, kMask };

BatchMade batch_forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        const MaybeTensor& residual, double epsilon, bool has_relu) {
  const at::MemoryFormat format = format_of(input);
  const at::Tensor x = input.contiguous(format);
  const at::Tensor gamma = weight.contiguous(), beta = bias.contiguous();
  const at::Tensor added =
      residual ? residual->to(x.scalar_type()).contiguous(format) : at::Tensor();
  const kernels::BatchNormShape shape = shape_of(x, format);
  const ForwardStatistics made(shape.channels);
  const at::Tensor y = at::empty_like(x);
  // One word at least: without elements it would have no address.
  const at::Tensor mask =
      at::empty({has_relu ? std::max<std::int64_t>(kernels::mask_words(shape), 1) : 0}, at::kShort);
  internal::with_type_of(x, [&]<typename T>(T) {
    const kernels::BatchNormForwardOf<T> arrays{
        .x = elements<T>(x),
        .residual = elements<T>(added),
        .gamma = floats(gamma),
        .beta = floats(beta),
        .y = mutable_elements<T>(y),
        .mask = has_relu ? mutable_elements<std::uint16_t>(mask) : nullptr,
        .variance = mutable_floats(made.variance),
        .statistics = pointers(made.mean, made.inverse_deviation, made.count)};
    kernels::batch_norm_forward({.epsilon = static_cast<float>(epsilon), .has_relu = has_relu},
                                shape, arrays, nullptr, internal::on_torch_threads);
  });
  return {y, made.mean, made.variance, made.inverse_deviation, made.count, mask};
}

/// x        as forward had it, in one of the kernel's layouts.
/// Returns  the gradients of x, weight, bias and, with ReLU, of the residual; else it is empty.
using BatchGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

BatchGradients batch_backward(const at::Tensor& given_dy, const at::Tensor& x,
                              const at::Tensor& given_gamma, const at::Tensor& mean,
                              const at::Tensor& inverse_deviation, const at::Tensor& count,
                              const at::Tensor& mask, bool has_residual) {
  const at::MemoryFormat format = format_of(x);
  const at::Tensor dy = given_dy.to(x.scalar_type()).contiguous(format);
  const at::Tensor gamma = given_gamma.contiguous();
  const at::Tensor dx = at::empty_like(x);
  const at::Tensor dgamma = at::empty_like(gamma), dbeta = at::empty_like(gamma);
  const bool has_relu = mask.numel() > 0, is_masked = has_residual && has_relu;
  const at::Tensor dresidual = is_masked ? at::empty_like(x) : at::empty({0}, x.options());
  internal::with_type_of(x, [&]<typename T>(T) {
    const kernels::BatchNormBackwardOf<T> arrays{
        .gradient_y = elements<T>(dy),
        .x = elements<T>(x),
        .gamma = floats(gamma),
        .mask = has_relu ? elements<std::uint16_t>(mask) : nullptr,
        .statistics = pointers(mean, inverse_deviation, count),
        .gradient_x = mutable_elements<T>(dx),
        .gradient_residual = is_masked ? mutable_elements<T>(dresidual) : nullptr,
        .gradient_gamma = mutable_floats(dgamma),
        .gradient_beta = mutable_floats(dbeta)};
    kernels::batch_norm_backward(shape_of(x, format), arrays, nullptr, internal::on_torch_threads);
  });
  return {dx, dgamma, dbeta, dresidual};
}

class TrainingBatchNorm : public torch::autograd::Function<TrainingBatchNorm> {
 public:
  /// made   written, for the running statistics: outputs of a function cost more.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const MaybeTensor& residual, double epsilon, bool has_relu,
                            BatchMade* made) {
    static const auto op = internal::find_operator<decltype(batch_forward)>("trireme::_batch_norm");
    const at::Tensor x = input.contiguous(format_of(input)), gamma = weight.contiguous();
    {
      const internal::BelowAutograd below;
      *made = op.call(x, gamma, bias, residual, epsilon, has_relu);
    }
    context->save_for_backward({x, gamma, std::get<kMean>(*made),
                                std::get<kInverseDeviation>(*made), std::get<kCount>(*made),
                                std::get<kMask>(*made)});
    context->saved_data["has_residual"] = residual.has_value();
    context->saved_data["has_relu"] = has_relu;
    return std::get<kY>(*made);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        internal::find_operator<decltype(batch_backward)>("trireme::_batch_norm_backward");
    const auto saved = context->get_saved_variables();
    const bool has_residual = context->saved_data["has_residual"].toBool();
    const auto [dx, dgamma, dbeta, masked] = [&] {
      const internal::BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5],
                     has_residual);
    }();
    at::Tensor dresidual;
    if (has_residual) dresidual = context->saved_data["has_relu"].toBool() ? masked : gradients[0];
    return internal::once_differentiable("batch_norm", {dx, dgamma, dbeta, dresidual, {}, {}, {}});
  }
};

/// The variance times count / (count - 1), which is a tensor where a tracer leaves it open.
at::Tensor unbiased(const at::Tensor& input, const BatchMade& made) {
  const at::Tensor& variance = std::get<kVariance>(made);
  const c10::SymInt elements = input.sym_numel() / input.sym_size(1);
  if (const auto known = elements.maybe_as_int()) {
    const auto count = static_cast<double>(*known);
    return variance.mul(count / (count - 1));
  }
  const at::Tensor& count = std::get<kCount>(made);
  return variance.mul(count.div(count.sub(1)).to(at::kFloat));
}

/// As ATen rounds it, which commits of recorded statistics repeat.
void move_running(const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
                  const at::Tensor& input, const BatchMade& made) {
  const at::NoGradGuard no_grad;
  const auto share = static_cast<float>(momentum);
  const float rest = 1.0F - share;
  if (running_mean) {
    running_mean->copy_(std::get<kMean>(made).mul(share).add_(running_mean->mul(rest)));
  }
  if (!running_var) return;
  running_var->copy_(unbiased(input, made).to(at::kDouble).mul(share).add_(running_var->mul(rest)));
}

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
  const c10::SymInt channels = input.sym_size(1);
  const auto all = [&](const MaybeTensor& given, double value) {
    return given ? *given : at::full_symint({channels}, value, at::kFloat);
  };
  BatchMade made;
  const at::Tensor y =
      TrainingBatchNorm::apply(input, all(weight, 1), all(bias, 0), residual, epsilon, relu, &made);
  move_running(running_mean, running_var, momentum, input, made);
  return y;
}

// Like aten::batch_norm's, the schema does not say that training writes the running statistics: it
// cannot say that evaluation does not.
TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, "
      "Tensor? residual=None, bool relu=False) -> Tensor");
  library.impl("batch_norm", run_batch_norm);
  library.def(
      "_batch_norm(Tensor input, Tensor weight, Tensor bias, Tensor? residual, float eps, "
      "bool relu) -> (Tensor y, Tensor mean, Tensor variance, Tensor inverse_deviation, "
      "Tensor count, Tensor mask)");
  library.impl("_batch_norm", internal::kernel_below_autograd(batch_forward));
  library.def(
      "_batch_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, "
      "Tensor inverse_deviation, Tensor count, Tensor mask, bool has_residual) "
      "-> (Tensor dx, Tensor dweight, Tensor dbias, Tensor dresidual)");
  library.impl("_batch_norm_backward", internal::kernel_below_autograd(batch_backward));
}

at::Tensor batch_norm_under_autocast(const at::Tensor& input, const MaybeTensor& weight,
                                     const MaybeTensor& bias, const MaybeTensor& running_mean,
                                     const MaybeTensor& running_var, bool training, double momentum,
                                     double epsilon, const MaybeTensor& residual, bool relu) {
  static const auto op = internal::find_operator<decltype(run_batch_norm)>("trireme::batch_norm");
  const c10::impl::ExcludeDispatchKeyGuard plainly(c10::DispatchKey::AutocastCPU);
  const at::ScalarType type = internal::type_under_autocast(input);
  return op.call(input.to(type), internal::cast(weight, at::kFloat),
                 internal::cast(bias, at::kFloat), running_mean, running_var, training, momentum,
                 epsilon, internal::cast(residual, type), relu);
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("batch_norm", batch_norm_under_autocast);
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
