#include <algorithm>
#include <vector>

#include "tests/judges/judge.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::judges {
namespace {

/// What an optimizer is given in a step; moments are kept as State.
template <typename State>
struct Step {
  std::int64_t step;
  const float* gradient;
  State *m, *v;
  float* parameter;
  std::int64_t n;
};

template <typename State, typename Update>
Tensors steps_with(const Tensors& inputs, const Update& update) {
  const auto start = inputs.get<float>("parameter");
  const auto gradients = inputs.get<float>("gradient");
  const auto n = std::ssize(start);
  Tensors outputs;
  const auto parameter = outputs.add<float>("parameter", {n});
  std::ranges::copy(start, parameter.begin());
  std::vector<State> m(n), v(n);
  for (std::int64_t step = 1; step * n <= std::ssize(gradients); ++step) {
    const float* const gradient = gradients.data() + (step - 1) * n;
    update(Step<State>{step, gradient, m.data(), v.data(), parameter.data(), n});
  }
  return outputs;
}

/// parameter [n], gradient [steps, n], option bf16: how moments are kept -> parameter [n]. Calls
/// `update(Step)`.
template <typename Update>
Tensors steps_of(const Tensors& inputs, const Update& update) {
  if (inputs.number("bf16") != 0) return steps_with<kernels::Bf16>(inputs, update);
  return steps_with<float>(inputs, update);
}

Tensors adamw(const Tensors& inputs) {
  const kernels::AdamwOptions options{.learning_rate = inputs.number("learning_rate"),
                                      .weight_decay = inputs.number("weight_decay")};
  return steps_of(inputs, [&](const auto& s) {
    kernels::adamw(options, s.step, s.gradient, s.m, s.v, s.parameter, s.n);
  });
}

Tensors sgd(const Tensors& inputs) {
  const kernels::SgdOptions options{.learning_rate = inputs.number("learning_rate"),
                                    .momentum = 0.9,
                                    .weight_decay = inputs.number("weight_decay"),
                                    .nesterov = inputs.number("nesterov") != 0};
  return steps_of(inputs, [&](const auto& s) {
    kernels::sgd(options, s.step == 1, s.gradient, s.m, s.parameter, s.n);
  });
}

Tensors lamb(const Tensors& inputs) {
  const kernels::LambOptions options{.weight_decay = inputs.number("weight_decay")};
  return steps_of(inputs, [&](const auto& s) {
    kernels::lamb(options, s.step, s.gradient, s.m, s.v, s.parameter, s.n);
  });
}

Tensors lars(const Tensors& inputs) {
  const kernels::LarsOptions options{.learning_rate = 0.1,
                                     .weight_decay = inputs.number("weight_decay")};
  return steps_of(
      inputs, [&](const auto& s) { kernels::lars(options, s.gradient, s.m, s.parameter, s.n); });
}

Tensors novograd(const Tensors& inputs) {
  const kernels::NovogradOptions options{
      .weight_decay = inputs.number("weight_decay"),
      .averages_gradients = inputs.number("averages_gradients") != 0};
  double v = 0;
  return steps_of(inputs, [&](const auto& s) {
    kernels::novograd(options, s.step, s.gradient, v, s.m, s.parameter, s.n);
  });
}

/// Of a matrix with `rows`, of a vector where they are 0; the learning rate is relative where it is
/// 0.
Tensors adafactor(const Tensors& inputs) {
  kernels::AdafactorOptions options{.warms_up = inputs.number("warms_up") != 0,
                                    .beta1 = inputs.number("beta1"),
                                    .weight_decay = inputs.number("weight_decay")};
  const double learning_rate = inputs.number("learning_rate");
  if (learning_rate != 0) options.learning_rate = learning_rate;
  const auto rows = static_cast<std::int64_t>(inputs.number("rows"));
  const std::size_t n = inputs.get<float>("parameter").size();
  std::vector<float> row(n), column(n);
  return steps_of(inputs, [&](const auto& s) {
    if (rows == 0) {
      kernels::adafactor(options, s.step, s.gradient, row.data(), s.m, s.parameter, s.n);
    } else {
      kernels::adafactor(options, s.step, {1, rows, s.n / rows}, s.gradient, row.data(),
                         column.data(), s.m, s.parameter);
    }
  });
}

}  // namespace

void add_optimizers(Operations& operations) {
  operations["adafactor"] = adafactor;
  operations["adamw"] = adamw;
  operations["lamb"] = lamb;
  operations["lars"] = lars;
  operations["novograd"] = novograd;
  operations["sgd"] = sgd;
}

}  // namespace trireme::judges
