#include <algorithm>
#include <vector>

#include "tests/judges/judge.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/layerwise.h"

namespace trireme::judges {
namespace {

/// parameter [n], gradient [steps, n], options of AdamwOptions -> parameter [n]
Tensors adamw(const Tensors& inputs) {
  const kernels::AdamwOptions options{.learning_rate = inputs.number("learning_rate"),
                                      .beta1 = inputs.number("beta1"),
                                      .beta2 = inputs.number("beta2"),
                                      .epsilon = inputs.number("epsilon"),
                                      .weight_decay = inputs.number("weight_decay")};
  const auto start = inputs.get<float>("parameter");
  const auto gradients = inputs.get<float>("gradient");
  const auto n = std::ssize(start);
  Tensors outputs;
  const auto parameter = outputs.add<float>("parameter", {n});
  std::ranges::copy(start, parameter.begin());
  std::vector<float> m(n), v(n);
  for (std::int64_t step = 1; step * n <= std::ssize(gradients); ++step) {
    kernels::adamw(options, step, gradients.data() + (step - 1) * n, m.data(), v.data(),
                   parameter.data(), n);
  }
  return outputs;
}

/// parameter [n], gradient [steps, n]; calls `update(step, gradient, parameter, n)` -> parameter
/// [n]
template <typename Update>
Tensors steps_of(const Tensors& inputs, const Update& update) {
  const auto start = inputs.get<float>("parameter");
  const auto gradients = inputs.get<float>("gradient");
  const auto n = std::ssize(start);
  Tensors outputs;
  const auto parameter = outputs.add<float>("parameter", {n});
  std::ranges::copy(start, parameter.begin());
  for (std::int64_t step = 1; step * n <= std::ssize(gradients); ++step) {
    update(step, gradients.data() + (step - 1) * n, parameter.data(), n);
  }
  return outputs;
}

Tensors lamb(const Tensors& inputs) {
  const kernels::LambOptions options{.weight_decay = inputs.number("weight_decay")};
  std::vector<float> m(inputs.get<float>("parameter").size()), v(m.size());
  return steps_of(inputs, [&](auto step, const float* g, float* p, auto n) {
    kernels::lamb(options, step, g, m.data(), v.data(), p, n);
  });
}

Tensors lars(const Tensors& inputs) {
  const kernels::LarsOptions options{.learning_rate = 0.1,
                                     .weight_decay = inputs.number("weight_decay")};
  std::vector<float> buffer(inputs.get<float>("parameter").size());
  return steps_of(inputs, [&](auto, const float* g, float* p, auto n) {
    kernels::lars(options, g, buffer.data(), p, n);
  });
}

Tensors novograd(const Tensors& inputs) {
  const kernels::NovogradOptions options{
      .weight_decay = inputs.number("weight_decay"),
      .averages_gradients = inputs.number("averages_gradients") != 0};
  std::vector<float> m(inputs.get<float>("parameter").size());
  double v = 0;
  return steps_of(inputs, [&](auto step, const float* g, float* p, auto n) {
    kernels::novograd(options, step, g, v, m.data(), p, n);
  });
}

}  // namespace

void add_optimizers(Operations& operations) {
  operations["adamw"] = adamw;
  operations["lamb"] = lamb;
  operations["lars"] = lars;
  operations["novograd"] = novograd;
}

}  // namespace trireme::judges
