#include "trireme/engine/operators/cross_entropy.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/kernels/loss/cross_entropy.h"

namespace trireme::operators {
namespace {

using internal::BelowAutograd;
using internal::Expect;
using internal::find_operator;
using internal::kernel_below_autograd;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::ClassRows rows_of(const at::Tensor& logits, const at::Tensor& classes) {
  return {.logits = logits.const_data_ptr<float>(),
          .classes = classes.const_data_ptr<std::int64_t>(),
          .num_rows = classes.numel(),
          .num_classes = logits.size(-1)};
}

std::tuple<at::Tensor, at::Tensor> losses_kernel(const at::Tensor& given_logits,
                                                 const at::Tensor& given_classes) {
  const at::Tensor logits = given_logits.contiguous(), classes = given_classes.contiguous();
  const at::Tensor losses = at::empty(classes.sizes(), logits.options());
  const at::Tensor log_sums = at::empty_like(losses);
  kernels::cross_entropy(rows_of(logits, classes), losses.mutable_data_ptr<float>(),
                         log_sums.mutable_data_ptr<float>(), internal::on_torch_threads);
  return {losses, log_sums};
}

at::Tensor losses_backward_kernel(const at::Tensor& given_gradient, const at::Tensor& given_logits,
                                  const at::Tensor& given_classes, const at::Tensor& log_sums) {
  const at::Tensor logits = given_logits.contiguous(), classes = given_classes.contiguous();
  const at::Tensor gradient = given_gradient.contiguous(), made = at::empty_like(logits);
  kernels::cross_entropy_backward(rows_of(logits, classes), log_sums.const_data_ptr<float>(),
                                  gradient.const_data_ptr<float>(), made.mutable_data_ptr<float>(),
                                  internal::on_torch_threads);
  return made;
}

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& classes) {
    static const auto op = find_operator<decltype(losses_kernel)>("trireme::_cross_entropy");
    const auto [losses, log_sums] = [&] {
      const BelowAutograd below;
      return op.call(logits, classes);
    }();
    context->save_for_backward({logits, classes, log_sums});
    return losses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        find_operator<decltype(losses_backward_kernel)>("trireme::_cross_entropy_backward");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor made = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2]);
    }();
    return internal::once_differentiable("cross_entropy", {made, {}});
  }
};

at::Tensor run_cross_entropy(const at::Tensor& logits, const at::Tensor& classes) {
  const Expect expect("cross_entropy");
  expect.dtype("logits", logits, {at::kFloat});
  expect.dtype("classes", classes, {at::kLong});
  expect.dims("logits", logits, classes.dim() + 1);
  expect.shape("classes", classes, logits.sym_sizes().slice(0, classes.dim()));
  return CrossEntropy::apply(logits, classes);
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def("cross_entropy(Tensor logits, Tensor classes) -> Tensor");
  library.impl("cross_entropy", run_cross_entropy);
  library.def("_cross_entropy(Tensor logits, Tensor classes) -> (Tensor losses, Tensor log_sums)");
  library.impl("_cross_entropy", kernel_below_autograd(losses_kernel));
  library.def(
      "_cross_entropy_backward(Tensor gradient, Tensor logits, Tensor classes, Tensor log_sums) "
      "-> Tensor");
  library.impl("_cross_entropy_backward", kernel_below_autograd(losses_backward_kernel));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("cross_entropy", internal::under_autocast());
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& classes) {
  static const auto op = find_operator<decltype(run_cross_entropy)>("trireme::cross_entropy");
  return op.call(logits, classes);
}

}  // namespace trireme::operators
