#include "trireme/engine/operators/batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <string>
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

/// The calls of the kernel that a batch is: one for each group of samples, where it lies. Samples are outermost in both layouts,
/// and a sample's words of the mask are its own.
struct SampleGroups {
  SampleGroups(const at::Tensor& x, at::MemoryFormat format, std::int64_t group_samples)
      : whole(shape_of(x, format)),
        samples(group_samples > 0 && group_samples < whole.batch
                    ? group_samples
                    : std::max<std::int64_t>(whole.batch, 1)),
        count(std::max<std::int64_t>((whole.batch + samples - 1) / samples, 1)),
        sample_elements(whole.channels * whole.spatial),
        sample_words(words_of(1)) {}

  std::int64_t words_of(std::int64_t batch) const {
    kernels::BatchNormShape shape = whole;
    shape.batch = batch;
    return kernels::mask_words(shape);
  }

  /// The last group has what is left.
  kernels::BatchNormShape shape(std::int64_t group) const {
    kernels::BatchNormShape result = whole;
    result.batch = std::min(samples, whole.batch - group * samples);
    return result;
  }

  /// Offsets of a group's first element, of its mask, of its statistics.
  std::int64_t element(std::int64_t group) const { return group * samples * sample_elements; }
  std::int64_t word(std::int64_t group) const { return group * samples * sample_words; }
  std::int64_t channel(std::int64_t group) const { return group * whole.channels; }

  kernels::BatchNormShape whole;
  std::int64_t samples;  ///< Of a group.
  std::int64_t count;    ///< Of groups.
  std::int64_t sample_elements, sample_words;
};

/// Those of one group.
kernels::BatchNormStatistics statistics_of(const at::Tensor& mean, const at::Tensor& inverse,
                                           const at::Tensor& count, const SampleGroups& groups,
                                           std::int64_t group) {
  const auto all = pointers(mean, inverse, count);
  return {all.mean + groups.channel(group), all.inverse_deviation + groups.channel(group),
          all.count + group};
}

template <typename T>
T* moved(T* pointer, std::int64_t offset) {
  return pointer == nullptr ? nullptr : pointer + offset;
}

BatchMade batch_forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        const MaybeTensor& residual, double epsilon, bool has_relu,
                        std::int64_t group_samples) {
  const at::MemoryFormat format = format_of(input);
  const at::Tensor x = input.contiguous(format);
  const at::Tensor gamma = weight.contiguous(), beta = bias.contiguous();
  const at::Tensor added =
      residual ? residual->to(x.scalar_type()).contiguous(format) : at::Tensor();
  const SampleGroups groups(x, format, group_samples);
  const ForwardStatistics made(groups.whole.channels, groups.count);
  const at::Tensor y = at::empty_like(x);
  // One word at least: without elements it would have no address.
  const at::Tensor mask = at::empty(
      {has_relu ? std::max<std::int64_t>(groups.words_of(groups.whole.batch), 1) : 0}, at::kShort);
  const kernels::BatchNormOptions options{.epsilon = static_cast<float>(epsilon),
                                          .has_relu = has_relu};
  internal::with_type_of(x, [&]<typename T>(T) {
    for (std::int64_t group = 0; group < groups.count; ++group) {
      const std::int64_t element = groups.element(group);
      const kernels::BatchNormForwardOf<T> arrays{
          .x = elements<T>(x) + element,
          .residual = moved(elements<T>(added), element),
          .gamma = floats(gamma),
          .beta = floats(beta),
          .y = mutable_elements<T>(y) + element,
          .mask = has_relu ? mutable_elements<std::uint16_t>(mask) + groups.word(group) : nullptr,
          .variance = mutable_floats(made.variance) + groups.channel(group),
          .statistics =
              statistics_of(made.mean, made.inverse_deviation, made.count, groups, group)};
      kernels::batch_norm_forward(options, groups.shape(group), arrays, nullptr,
                                  internal::on_torch_threads);
    }
  });
  return {y, made.mean, made.variance, made.inverse_deviation, made.count, mask};
}

/// x        as forward had it, in one of the kernel's layouts.
/// Returns  the gradients of x, weight, bias and, with ReLU, of the residual; else it is empty.
using BatchGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Of [groups, C], added from the first group on.
at::Tensor sum_groups(const at::Tensor& gradients) {
  at::Tensor sum = gradients[0];
  for (std::int64_t group = 1; group < gradients.size(0); ++group) sum.add_(gradients[group]);
  return sum;
}

BatchGradients batch_backward(const at::Tensor& given_dy, const at::Tensor& x,
                              const at::Tensor& given_gamma, const at::Tensor& mean,
                              const at::Tensor& inverse_deviation, const at::Tensor& count,
                              const at::Tensor& mask, bool has_residual,
                              std::int64_t group_samples) {
  const at::MemoryFormat format = format_of(x);
  const at::Tensor dy = given_dy.to(x.scalar_type()).contiguous(format);
  const at::Tensor gamma = given_gamma.contiguous();
  const SampleGroups groups(x, format, group_samples);
  const at::Tensor dx = at::empty_like(x);
  const at::Tensor dgamma = at::empty({groups.count, groups.whole.channels}, gamma.options());
  const at::Tensor dbeta = at::empty_like(dgamma);
  const bool has_relu = mask.numel() > 0, is_masked = has_residual && has_relu;
  const at::Tensor dresidual = is_masked ? at::empty_like(x) : at::empty({0}, x.options());
  internal::with_type_of(x, [&]<typename T>(T) {
    for (std::int64_t group = 0; group < groups.count; ++group) {
      const std::int64_t element = groups.element(group), channel = groups.channel(group);
      const kernels::BatchNormBackwardOf<T> arrays{
          .gradient_y = elements<T>(dy) + element,
          .x = elements<T>(x) + element,
          .gamma = floats(gamma),
          .mask = has_relu ? elements<std::uint16_t>(mask) + groups.word(group) : nullptr,
          .statistics = statistics_of(mean, inverse_deviation, count, groups, group),
          .gradient_x = mutable_elements<T>(dx) + element,
          .gradient_residual = is_masked ? mutable_elements<T>(dresidual) + element : nullptr,
          .gradient_gamma = mutable_floats(dgamma) + channel,
          .gradient_beta = mutable_floats(dbeta) + channel};
      kernels::batch_norm_backward(groups.shape(group), arrays, nullptr,
                                   internal::on_torch_threads);
    }
  });
  return {dx, sum_groups(dgamma), sum_groups(dbeta), dresidual};
}

class TrainingBatchNorm : public torch::autograd::Function<TrainingBatchNorm> {
 public:
  /// made   written, for the running statistics: outputs of a function cost more.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const MaybeTensor& residual, double epsilon, bool has_relu,
                            std::int64_t group_samples, BatchMade* made) {
    static const auto op = internal::find_operator<decltype(batch_forward)>("trireme::_batch_norm");
    const at::Tensor x = input.contiguous(format_of(input)), gamma = weight.contiguous();
    {
      const internal::BelowAutograd below;
      *made = op.call(x, gamma, bias, residual, epsilon, has_relu, group_samples);
    }
    context->save_for_backward({x, gamma, std::get<kMean>(*made),
                                std::get<kInverseDeviation>(*made), std::get<kCount>(*made),
                                std::get<kMask>(*made)});
    context->saved_data["has_residual"] = residual.has_value();
    context->saved_data["has_relu"] = has_relu;
    context->saved_data["group_samples"] = group_samples;
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
                     has_residual, context->saved_data["group_samples"].toInt());
    }();
    at::Tensor dresidual;
    if (has_residual) dresidual = context->saved_data["has_relu"].toBool() ? masked : gradients[0];
    return internal::once_differentiable("batch_norm",
                                         {dx, dgamma, dbeta, dresidual, {}, {}, {}, {}});
  }
};

/// Of statistics of several groups, [groups x C], their mean, each by the number of its elements.
at::Tensor mean_of_groups(const at::Tensor& statistics, const at::Tensor& count) {
  const at::Tensor share = count.div(count.sum()).unsqueeze(1);
  return statistics.view_symint({count.sym_size(0), -1}).mul(share).sum(0).to(at::kFloat);
}

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

/// What running statistics take of a batch: mean and unbiased variance, [C] f32; of several groups the mean of theirs.
struct BatchStatistics {
  at::Tensor mean, variance;
};

BatchStatistics statistics_of_batch(const at::Tensor& input, const BatchMade& made,
                                    std::int64_t group_samples) {
  const at::Tensor& count = std::get<kCount>(made);
  const auto num_samples = input.sym_size(0).maybe_as_int();
  if (group_samples == 0 || (num_samples && *num_samples <= group_samples)) {
    return {std::get<kMean>(made), unbiased(input, made)};
  }
  const at::Tensor scale = count.div(count.sub(1)).unsqueeze(1);
  const at::Tensor variance =
      std::get<kVariance>(made).view_symint({count.sym_size(0), -1}).mul(scale);
  return {mean_of_groups(std::get<kMean>(made), count), mean_of_groups(variance.flatten(), count)};
}

/// As ATen rounds it, which commits of recorded statistics repeat.
void move_running(const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum,
                  const BatchStatistics& batch) {
  const at::NoGradGuard no_grad;
  const auto share = static_cast<float>(momentum);
  const float rest = 1.0F - share;
  if (running_mean) {
    running_mean->copy_(batch.mean.mul(share).add_(running_mean->mul(rest)));
  }
  if (!running_var) return;
  running_var->copy_(batch.variance.to(at::kDouble).mul(share).add_(running_var->mul(rest)));
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
at::Tensor run_grouped(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                       const MaybeTensor& running_mean, const MaybeTensor& running_var,
                       bool training, double momentum, double epsilon, const MaybeTensor& residual,
                       bool relu, std::int64_t group_samples) {
  const NormArguments arguments{input, weight, bias, running_mean, running_var, residual};
  const Expect expect("batch_norm");
  internal::check(expect, arguments);
  if (group_samples < 0) {
    expect.fail("group_samples is " + std::to_string(group_samples) +
                "; expected the samples of a group, or 0 for all");
  }
  if (!training) return in_evaluation(expect, arguments, epsilon, relu);
  const c10::SymInt channels = input.sym_size(1);
  const auto all = [&](const MaybeTensor& given, double value) {
    return given ? *given : at::full_symint({channels}, value, at::kFloat);
  };
  BatchMade made;
  const at::Tensor y = TrainingBatchNorm::apply(input, all(weight, 1), all(bias, 0), residual,
                                                epsilon, relu, group_samples, &made);
  if (running_mean || running_var) {
    move_running(running_mean, running_var, momentum,
                 statistics_of_batch(input, made, group_samples));
  }
  return y;
}

/// Of one group. An operator of its own, so that graphs without groups are what they were before there were any.
at::Tensor run_batch_norm(const at::Tensor& input, const MaybeTensor& weight,
                          const MaybeTensor& bias, const MaybeTensor& running_mean,
                          const MaybeTensor& running_var, bool training, double momentum,
                          double epsilon, const MaybeTensor& residual, bool relu) {
  return run_grouped(input, weight, bias, running_mean, running_var, training, momentum, epsilon,
                     residual, relu, 0);
}

auto plain_operator() {
  return internal::find_operator<decltype(run_batch_norm)>("trireme::batch_norm");
}
auto grouped_operator() {
  return internal::find_operator<decltype(run_grouped)>("trireme::batch_norm", "grouped");
}

// Like aten::batch_norm's, the schemas do not say that training writes the running statistics: they
// cannot say that evaluation does not.
TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, "
      "Tensor? residual=None, bool relu=False) -> Tensor");
  library.impl("batch_norm", run_batch_norm);
  library.def(
      "batch_norm.grouped(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
      "Tensor? running_var, bool training, float momentum, float eps, "
      "Tensor? residual, bool relu, int group_samples) -> Tensor");
  library.impl("batch_norm.grouped", run_grouped);
  library.def(
      "_batch_norm(Tensor input, Tensor weight, Tensor bias, Tensor? residual, float eps, "
      "bool relu, int group_samples) -> (Tensor y, Tensor mean, Tensor variance, "
      "Tensor inverse_deviation, Tensor count, Tensor mask)");
  library.impl("_batch_norm", internal::kernel_below_autograd(batch_forward));
  library.def(
      "_batch_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, "
      "Tensor inverse_deviation, Tensor count, Tensor mask, bool has_residual, int group_samples) "
      "-> (Tensor dx, Tensor dweight, Tensor dbias, Tensor dresidual)");
  library.impl("_batch_norm_backward", internal::kernel_below_autograd(batch_backward));
}

/// Calls `op` below autocast, with what it casts; `rest` is behind the residual.
template <typename Operator, typename... Rest>
at::Tensor call_under_autocast(const Operator& op, const NormArguments& given, bool training,
                               double momentum, double epsilon, Rest... rest) {
  const c10::impl::ExcludeDispatchKeyGuard plainly(c10::DispatchKey::AutocastCPU);
  const at::ScalarType type = internal::type_under_autocast(given.input);
  return op.call(given.input.to(type), internal::cast(given.weight, at::kFloat),
                 internal::cast(given.bias, at::kFloat), given.running_mean, given.running_var,
                 training, momentum, epsilon, internal::cast(given.residual, type), rest...);
}

at::Tensor plain_under_autocast(const at::Tensor& input, const MaybeTensor& weight,
                                const MaybeTensor& bias, const MaybeTensor& running_mean,
                                const MaybeTensor& running_var, bool training, double momentum,
                                double epsilon, const MaybeTensor& residual, bool relu) {
  static const auto op = plain_operator();
  return call_under_autocast(op, {input, weight, bias, running_mean, running_var, residual},
                             training, momentum, epsilon, relu);
}

at::Tensor grouped_under_autocast(const at::Tensor& input, const MaybeTensor& weight,
                                  const MaybeTensor& bias, const MaybeTensor& running_mean,
                                  const MaybeTensor& running_var, bool training, double momentum,
                                  double epsilon, const MaybeTensor& residual, bool relu,
                                  std::int64_t group_samples) {
  static const auto op = grouped_operator();
  return call_under_autocast(op, {input, weight, bias, running_mean, running_var, residual},
                             training, momentum, epsilon, relu, group_samples);
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("batch_norm", plain_under_autocast);
  library.impl("batch_norm.grouped", grouped_under_autocast);
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                      const FusedBatchNormOptions& options) {
  const auto call = [&](const auto& op, auto... rest) {
    return op.call(input, given(tensors.weight), given(tensors.bias), given(tensors.running_mean),
                   given(tensors.running_var), options.is_training, options.momentum,
                   options.epsilon, given(options.residual), options.has_relu, rest...);
  };
  static const auto plain = plain_operator();
  static const auto grouped = grouped_operator();
  return options.group_samples == 0 ? call(plain) : call(grouped, options.group_samples);
}

}  // namespace trireme::operators
