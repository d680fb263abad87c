#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "python/packs/bind.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::python {
namespace {

using operators::internal::on_torch_threads;

// Arguments: what is updated, its gradient, what is kept of it, the count of the step from 1, then
// the options. python/trireme/optim.py has seen to it that all are dense f32 (or, of SGD and AdamW,
// f64) in one layout.

template <typename T>
T* data(const at::Tensor& tensor) {
  return tensor.mutable_data_ptr<T>();
}

template <typename Work>
void with_type(const at::Tensor& parameter, const Work& work) {
  if (parameter.scalar_type() == at::kDouble) return work(double{});
  work(float{});
}

void sgd(const at::Tensor& parameter, const at::Tensor& gradient,
         const std::optional<at::Tensor>& buffer, std::int64_t step, double learning_rate,
         double momentum, double dampening, double weight_decay, bool nesterov) {
  with_type(parameter, [&]<typename T>(T) {
    kernels::sgd({learning_rate, momentum, dampening, weight_decay, nesterov}, step == 1,
                 data<T>(gradient), buffer ? data<T>(*buffer) : nullptr, data<T>(parameter),
                 parameter.numel(), on_torch_threads);
  });
}

void adamw(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& exp_avg,
           const at::Tensor& exp_avg_sq, std::int64_t step, double learning_rate, double beta1,
           double beta2, double epsilon, double weight_decay) {
  with_type(parameter, [&]<typename T>(T) {
    kernels::adamw({learning_rate, beta1, beta2, epsilon, weight_decay}, step, data<T>(gradient),
                   data<T>(exp_avg), data<T>(exp_avg_sq), data<T>(parameter), parameter.numel(),
                   nullptr, on_torch_threads);
  });
}

void lamb(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& exp_avg,
          const at::Tensor& exp_avg_sq, std::int64_t step, double learning_rate, double beta1,
          double beta2, double epsilon, double weight_decay, bool adapts_always) {
  kernels::lamb({learning_rate, beta1, beta2, epsilon, weight_decay, adapts_always}, step,
                data<float>(gradient), data<float>(exp_avg), data<float>(exp_avg_sq),
                data<float>(parameter), parameter.numel(), on_torch_threads);
}

void lars(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& buffer,
          double learning_rate, double momentum, double weight_decay, double trust, double epsilon,
          bool adapts) {
  kernels::lars({learning_rate, momentum, weight_decay, trust, epsilon, adapts},
                data<float>(gradient), data<float>(buffer), data<float>(parameter),
                parameter.numel(), on_torch_threads);
}

/// second_moment   of the tensor.
/// Returns         the new one.
double novograd(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& exp_avg,
                double second_moment, std::int64_t step, double learning_rate, double beta1,
                double beta2, double epsilon, double weight_decay, bool averages_gradients) {
  kernels::novograd({learning_rate, beta1, beta2, epsilon, weight_decay, averages_gradients}, step,
                    data<float>(gradient), second_moment, data<float>(exp_avg),
                    data<float>(parameter), parameter.numel(), on_torch_threads);
  return second_moment;
}

/// moments   of a matrix its rows and columns, of a vector one of its shape.
/// exp_avg   where beta1 is not 0.
void adafactor(const at::Tensor& parameter, const at::Tensor& gradient,
               const std::vector<at::Tensor>& moments, const std::optional<at::Tensor>& exp_avg,
               std::int64_t step, const kernels::AdafactorOptions& options) {
  float* momentum = exp_avg ? data<float>(*exp_avg) : nullptr;
  if (moments.size() == 1) {
    return kernels::adafactor(options, step, data<float>(gradient), data<float>(moments[0]),
                              momentum, data<float>(parameter), parameter.numel());
  }
  const std::int64_t rows = parameter.size(-2), columns = parameter.size(-1);
  const std::int64_t count = parameter.numel() == 0 ? 0 : parameter.numel() / (rows * columns);
  kernels::adafactor(options, step, {count, rows, columns}, data<float>(gradient),
                     data<float>(moments[0]), data<float>(moments[1]), momentum,
                     data<float>(parameter));
}

kernels::AdafactorOptions adafactor_options(std::optional<double> learning_rate, bool warms_up,
                                            bool scales_by_parameter, double decay_exponent,
                                            double clip, double beta1, double weight_decay,
                                            double epsilon1, double epsilon2) {
  return {learning_rate, warms_up, scales_by_parameter, decay_exponent, clip, beta1, weight_decay,
          epsilon1,      epsilon2};
}

/// Of a layout that they share, so that they can be walked in the order of memory.
bool have_one_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.is_non_overlapping_and_dense() && a.strides() == b.strides() && a.sizes() == b.sizes();
}

}  // namespace

void bind_optimizers(py::module_& module) {
  using py::arg;
  module.def("have_one_layout", &have_one_layout, arg("a"), arg("b"));
  module.def("sgd", &sgd, arg("parameter"), arg("gradient"), arg("buffer"), arg("step"),
             arg("learning_rate"), arg("momentum"), arg("dampening"), arg("weight_decay"),
             arg("nesterov"), Unlocked());
  module.def("adamw", &adamw, arg("parameter"), arg("gradient"), arg("exp_avg"), arg("exp_avg_sq"),
             arg("step"), arg("learning_rate"), arg("beta1"), arg("beta2"), arg("epsilon"),
             arg("weight_decay"), Unlocked());
  module.def("lamb", &lamb, arg("parameter"), arg("gradient"), arg("exp_avg"), arg("exp_avg_sq"),
             arg("step"), arg("learning_rate"), arg("beta1"), arg("beta2"), arg("epsilon"),
             arg("weight_decay"), arg("adapts_always"), Unlocked());
  module.def("lars", &lars, arg("parameter"), arg("gradient"), arg("buffer"), arg("learning_rate"),
             arg("momentum"), arg("weight_decay"), arg("trust"), arg("epsilon"), arg("adapts"),
             Unlocked());
  module.def("novograd", &novograd, arg("parameter"), arg("gradient"), arg("exp_avg"),
             arg("second_moment"), arg("step"), arg("learning_rate"), arg("beta1"), arg("beta2"),
             arg("epsilon"), arg("weight_decay"), arg("averages_gradients"), Unlocked());
  py::class_<kernels::AdafactorOptions>(module, "AdafactorOptions")
      .def(py::init(&adafactor_options), py::kw_only(), arg("learning_rate"), arg("warms_up"),
           arg("scales_by_parameter"), arg("decay_exponent"), arg("clip"), arg("beta1"),
           arg("weight_decay"), arg("epsilon1"), arg("epsilon2"));
  module.def("adafactor", &adafactor, arg("parameter"), arg("gradient"), arg("moments"),
             arg("exp_avg"), arg("step"), arg("options"), Unlocked());
}

}  // namespace trireme::python
