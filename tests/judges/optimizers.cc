#include <algorithm>
#include <vector>

#include "tests/judges/judge.h"
#include "trireme/kernels/optimizer/adamw.h"

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

}  // namespace

void add_optimizers(Operations& operations) { operations["adamw"] = adamw; }

}  // namespace trireme::judges
