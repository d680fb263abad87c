#include "trireme/kernels/bench/optimizer_cases.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "trireme/kernels/bench/random_values.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/layerwise.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels::bench {
namespace {

/// Sizes of ResNet-50's parameters: 53 convolutions, their norms' weights and biases, the last
/// layer.
std::vector<std::int64_t> resnet50_sizes() {
  std::vector<std::int64_t> sizes;
  const auto add_convolution = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    sizes.insert(sizes.end(), {in * out * kernel * kernel, out, out});
  };
  add_convolution(3, 64, 7);
  std::int64_t in = 64;
  const std::int64_t num_blocks[] = {3, 4, 6, 3};
  for (int level = 0; level < 4; ++level) {
    const std::int64_t width = 64 << level;
    for (std::int64_t block = 0; block < num_blocks[level]; ++block) {
      add_convolution(in, width, 1);
      add_convolution(width, width, 3);
      add_convolution(width, 4 * width, 1);
      if (block == 0) add_convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  }
  sizes.insert(sizes.end(), {2048 * 1000, 1000});
  return sizes;
}

/// Inputs of any optimizer.
Tensors make_inputs() {
  Tensors inputs;
  const std::vector<std::int64_t> sizes = resnet50_sizes();
  std::ranges::copy(sizes, inputs.add<std::int64_t>("sizes", {std::ssize(sizes)}).begin());
  const std::int64_t n = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  fill_normal(inputs.add<float>("parameter", {n}), 1, 0.05F);
  fill_normal(inputs.add<float>("gradient", {n}), 2, 0.01F);
  return inputs;
}

/// What a step of a tensor is given: arrays of its elements, its index and the step from 1 on.
struct TensorStep {
  const float* gradient;
  float *m, *v, *parameter;
  std::int64_t size;
  std::size_t index;
  std::int64_t step;
};

class OptimizerCase final : public Case {
 public:
  explicit OptimizerCase(std::function<void(const TensorStep&)> update)
      : update_(std::move(update)) {
    const auto start = inputs_.get<float>("parameter");
    parameter_.assign(start.begin(), start.end());
    m_.resize(start.size());
    v_.resize(start.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto gradient = inputs_.get<float>("gradient");
    std::size_t begin = 0, index = 0;
    ++step_;
    for (const std::int64_t size : inputs_.get<std::int64_t>("sizes")) {
      update_({gradient.data() + begin, m_.data() + begin, v_.data() + begin,
               parameter_.data() + begin, size, index++, step_});
      begin += size;
    }
    if (step_ == 1) {
      std::ranges::copy(parameter_,
                        first_.add<float>("parameter", {std::ssize(parameter_)}).begin());
    }
  }

  Tensors outputs() const override { return first_; }

 private:
  const Tensors inputs_ = make_inputs();
  const std::function<void(const TensorStep&)> update_;
  std::vector<float> parameter_, m_, v_;
  std::int64_t step_ = 0;
  Tensors first_;  ///< After the first step.
};

/// bytes   for each parameter.
CaseEntry optimizer_entry(const std::string& name, double bytes, std::vector<std::string> peers,
                          std::function<void(const TensorStep&)> update) {
  constexpr double kParameters = 25'557'032;
  return {.name = name + "/resnet50",
          .shape = "25.6 M in 161 tensors",
          .bytes = kParameters * bytes,
          .tolerance = 1e-5,
          .peers = std::move(peers),
          .make = [update = std::move(update)](const CaseSetting&) {
            return std::make_unique<OptimizerCase>(update);
          }};
}

}  // namespace

std::vector<CaseEntry> optimizer_cases() {
  return {
      optimizer_entry("adamw", 28, {"torch"},
                      [](const TensorStep& t) {
                        adamw({}, t.step, t.gradient, t.m, t.v, t.parameter, t.size);
                      }),
      optimizer_entry("sgd", 20, {"torch"},
                      [](const TensorStep& t) {
                        sgd({.momentum = 0.9, .weight_decay = 1e-4}, t.step == 1, t.gradient, t.m,
                            t.parameter, t.size);
                      }),
      optimizer_entry(
          "lamb", 40, {"pytorch_optimizer", "timm"},
          [](const TensorStep& t) { lamb({}, t.step, t.gradient, t.m, t.v, t.parameter, t.size); }),
      optimizer_entry("lars", 28, {"timm"},
                      [](const TensorStep& t) {
                        lars({.weight_decay = 1e-4}, t.gradient, t.m, t.parameter, t.size);
                      }),
      optimizer_entry("novograd", 24, {"timm"},
                      [moments = std::make_shared<std::vector<double>>(1000)](const TensorStep& t) {
                        novograd({.weight_decay = 1e-3, .averages_gradients = true}, t.step,
                                 t.gradient, (*moments)[t.index], t.m, t.parameter, t.size);
                      })};
}

}  // namespace trireme::kernels::bench
