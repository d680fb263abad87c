#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "trireme/engine/operators/batch_norm.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/engine/operators/norm_tensors.h"

namespace trireme::operators {
namespace {

using internal::elements;
using internal::Expect;
using internal::floats;
using internal::given;
using internal::MaybeTensor;
using internal::mutable_elements;
using internal::mutable_floats;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The calls of the kernel that a batch is. Channels first: one, with the samples as further
/// channels. Channels last: one for each sample, where it lies.
struct Calls {
  Calls(const at::Tensor& x, at::MemoryFormat format)
      : count(format == at::MemoryFormat::Contiguous ? 1 : x.size(0)),
        shape{.batch = 1,
              .channels = x.size(0) / count * x.size(1),
              .spatial = c10::multiply_integers(x.sizes().slice(2)),
              .has_channels_last = format != at::MemoryFormat::Contiguous},
        words(kernels::mask_words(shape)) {}

  /// On torch's threads: the calls side by side where there are enough, else one after the other.
  void for_each(const std::function<void(std::int64_t call, const kernels::Spread&)>& run) const {
    if (count >= at::get_num_threads()) {
      internal::on_torch_threads(count, [&](std::int64_t i) { run(i, kernels::on_caller); });
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) run(i, internal::on_torch_threads);
  }

  /// Of the statistics of the kernel's channels those of one call.
  kernels::BatchNormStatistics statistics(const at::Tensor& mean, const at::Tensor& inverse,
                                          const at::Tensor& counts, std::int64_t call) const {
    return {mutable_floats(mean) + call * shape.channels,
            mutable_floats(inverse) + call * shape.channels,
            counts.mutable_data_ptr<double>() + call};
  }

  std::int64_t count;
  kernels::BatchNormShape shape;
  std::int64_t words;  ///< Of a call's mask.
};

std::uint16_t* mask_of(const at::Tensor& mask, std::int64_t offset) {
  return mask.numel() > 0 ? static_cast<std::uint16_t*>(mask.mutable_data_ptr()) + offset : nullptr;
}

/// InstanceGradients of [C], from those of each sample. Channels last keeps the order that autograd had
/// when each sample was a call of its own.
at::Tensor sum_samples(const at::Tensor& gradients, const at::Tensor& x, at::MemoryFormat format) {
  const at::Tensor rows = gradients.view({x.size(0), x.size(1)});
  if (format == at::MemoryFormat::Contiguous) return rows.sum(0);
  at::Tensor sum = rows[-1].clone();
  for (std::int64_t sample = x.size(0) - 2; sample >= 0; --sample) sum.add_(rows[sample]);
  return sum;
}

/// What forward makes: y, and what backward needs.
using InstanceMade = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

InstanceMade instance_forward(const at::Tensor& input, const at::Tensor& weight,
                              const at::Tensor& bias, double epsilon, bool has_relu) {
  const at::MemoryFormat format = internal::format_of(input);
  const at::Tensor x = input.contiguous(format);
  const Calls calls(x, format);
  const std::int64_t repeats = calls.shape.channels / x.size(1);
  const at::Tensor gamma = weight.repeat({repeats}), beta = bias.repeat({repeats});
  const at::Tensor mean = at::empty({calls.count * calls.shape.channels}, at::kFloat);
  const at::Tensor inverse = at::empty_like(mean), y = at::empty_like(x);
  const at::Tensor counts = at::empty({calls.count}, at::kDouble);
  const at::Tensor mask = at::empty({has_relu ? calls.count * calls.words : 0}, at::kShort);
  internal::with_type_of(x, [&]<typename T>(T) {
    calls.for_each([&](std::int64_t call, const kernels::Spread& spread) {
      const std::int64_t begin = call * calls.shape.count();
      const kernels::BatchNormForwardOf<T> arrays{
          .x = elements<T>(x) + begin,
          .gamma = floats(gamma),
          .beta = floats(beta),
          .y = mutable_elements<T>(y) + begin,
          .mask = mask_of(mask, call * calls.words),
          .statistics = calls.statistics(mean, inverse, counts, call)};
      kernels::batch_norm_forward({.epsilon = static_cast<float>(epsilon), .has_relu = has_relu},
                                  calls.shape, arrays, nullptr, spread);
    });
  });
  return {y, mean, inverse, counts, mask};
}

/// x        as forward had it, in one of the kernel's layouts.
/// Returns  the gradients of x, weight and bias.
using InstanceGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

InstanceGradients instance_backward(const at::Tensor& given_dy, const at::Tensor& x,
                                    const at::Tensor& weight, const at::Tensor& mean,
                                    const at::Tensor& inverse, const at::Tensor& counts,
                                    const at::Tensor& mask) {
  const at::MemoryFormat format = internal::format_of(x);
  const Calls calls(x, format);
  const at::Tensor gamma = weight.repeat({calls.shape.channels / x.size(1)});
  const at::Tensor dy = given_dy.to(x.scalar_type()).contiguous(format);
  const at::Tensor dx = at::empty_like(x), dgamma = at::empty_like(mean);
  const at::Tensor dbeta = at::empty_like(mean);
  internal::with_type_of(x, [&]<typename T>(T) {
    calls.for_each([&](std::int64_t call, const kernels::Spread& spread) {
      const std::int64_t begin = call * calls.shape.count(), channel = call * calls.shape.channels;
      const kernels::BatchNormBackwardOf<T> arrays{
          .gradient_y = elements<T>(dy) + begin,
          .x = elements<T>(x) + begin,
          .gamma = floats(gamma),
          .mask = mask_of(mask, call * calls.words),
          .statistics = calls.statistics(mean, inverse, counts, call),
          .gradient_x = mutable_elements<T>(dx) + begin,
          .gradient_gamma = mutable_floats(dgamma) + channel,
          .gradient_beta = mutable_floats(dbeta) + channel};
      kernels::batch_norm_backward(calls.shape, arrays, nullptr, spread);
    });
  });
  return {dx, sum_samples(dgamma, x, format), sum_samples(dbeta, x, format)};
}

class InstanceNorm : public torch::autograd::Function<InstanceNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias, double epsilon,
                            bool has_relu) {
    static const auto op =
        internal::find_operator<decltype(instance_forward)>("trireme::_instance_norm");
    const at::Tensor x = input.contiguous(internal::format_of(input));
    const auto [y, mean, inverse, counts, mask] = [&] {
      const internal::BelowAutograd below;
      return op.call(x, weight, bias, epsilon, has_relu);
    }();
    context->save_for_backward({x, weight, mean, inverse, counts, mask});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        internal::find_operator<decltype(instance_backward)>("trireme::_instance_norm_backward");
    const auto saved = context->get_saved_variables();
    const auto [dx, dweight, dbias] = [&] {
      const internal::BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5]);
    }();
    return internal::once_differentiable("instance_norm", {dx, dweight, dbias, {}, {}});
  }
};

at::Tensor run_instance_norm(const at::Tensor& input, const MaybeTensor& weight,
                             const MaybeTensor& bias, double epsilon, bool relu) {
  const Expect expect("instance_norm");
  internal::check(expect, {input, weight, bias, {}, {}, {}});
  if (input.sym_numel() == 0) return input.clone();
  const c10::SymInt channels = input.sym_size(1);
  const auto all = [&](const MaybeTensor& given, double value) {
    return given ? *given : at::full_symint({channels}, value, at::kFloat);
  };
  return InstanceNorm::apply(input, all(weight, 1), all(bias, 0), epsilon, relu);
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps=1e-05, "
      "bool relu=False) -> Tensor");
  library.impl("instance_norm", run_instance_norm);
  library.def(
      "_instance_norm(Tensor input, Tensor weight, Tensor bias, float eps, bool relu) "
      "-> (Tensor y, Tensor mean, Tensor inverse_deviation, Tensor counts, Tensor mask)");
  library.impl("_instance_norm", internal::kernel_below_autograd(instance_forward));
  library.def(
      "_instance_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, "
      "Tensor inverse_deviation, Tensor counts, Tensor mask) "
      "-> (Tensor dx, Tensor dweight, Tensor dbias)");
  library.impl("_instance_norm_backward", internal::kernel_below_autograd(instance_backward));
}

at::Tensor instance_norm_under_autocast(const at::Tensor& input, const MaybeTensor& weight,
                                        const MaybeTensor& bias, double epsilon, bool relu) {
  static const auto op =
      internal::find_operator<decltype(run_instance_norm)>("trireme::instance_norm");
  const c10::impl::ExcludeDispatchKeyGuard plainly(c10::DispatchKey::AutocastCPU);
  return op.call(input.to(internal::type_under_autocast(input)), internal::cast(weight, at::kFloat),
                 internal::cast(bias, at::kFloat), epsilon, relu);
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("instance_norm", instance_norm_under_autocast);
}

}  // namespace

at::Tensor instance_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         double epsilon, bool has_relu) {
  static const auto op =
      internal::find_operator<decltype(run_instance_norm)>("trireme::instance_norm");
  return op.call(input, given(weight), given(bias), epsilon, has_relu);
}

}  // namespace trireme::operators
