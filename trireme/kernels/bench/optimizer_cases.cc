#include "trireme/kernels/bench/optimizer_cases.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "trireme/kernels/bench/random_values.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels::bench {
namespace {

/// A parameter: a matrix, or a vector as a single row.
struct Shape {
  std::int64_t rows, columns;
};

/// ResNet-50's: 53 convolutions, their norms' weights and biases, the last layer.
std::vector<Shape> resnet50_shapes() {
  std::vector<Shape> shapes;
  const auto add_convolution = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    shapes.insert(shapes.end(), {{out, in * kernel * kernel}, {1, out}, {1, out}});
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
  shapes.insert(shapes.end(), {{1000, 2048}, {1, 1000}});
  return shapes;
}

/// Inputs of any optimizer.
Tensors make_inputs() {
  Tensors inputs;
  const std::vector<Shape> shapes = resnet50_shapes();
  const auto rows = inputs.add<std::int64_t>("rows", {std::ssize(shapes)});
  const auto sizes = inputs.add<std::int64_t>("sizes", {std::ssize(shapes)});
  std::ranges::transform(shapes, rows.begin(), &Shape::rows);
  std::ranges::transform(shapes, sizes.begin(), [](Shape s) { return s.rows * s.columns; });
  const std::int64_t n = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  fill_normal(inputs.add<float>("parameter", {n}), 1, 0.05F);
  fill_normal(inputs.add<float>("gradient", {n}), 2, 0.01F);
  return inputs;
}

/// What a step of a tensor is given: arrays of its elements, its index and the step from 1 on.
template <typename State>
struct TensorStep {
  const float* gradient;
  State *m, *v;
  float* parameter;
  std::int64_t rows, size;
  std::size_t index;
  std::int64_t step;
};

template <typename State>
using Update = std::function<void(const TensorStep<State>&)>;

template <typename State>
class OptimizerCase final : public Case {
 public:
  explicit OptimizerCase(Update<State> update) : update_(std::move(update)) {
    const auto start = inputs_.get<float>("parameter");
    parameter_.assign(start.begin(), start.end());
    m_.resize(start.size());
    v_.resize(start.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto gradient = inputs_.get<float>("gradient");
    const auto rows = inputs_.get<std::int64_t>("rows"), sizes = inputs_.get<std::int64_t>("sizes");
    std::int64_t begin = 0;
    ++step_;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      update_({gradient.data() + begin, m_.data() + begin, v_.data() + begin,
               parameter_.data() + begin, rows[i], sizes[i], i, step_});
      begin += sizes[i];
    }
    if (step_ == 1) {
      std::ranges::copy(parameter_,
                        first_.add<float>("parameter", {std::ssize(parameter_)}).begin());
    }
  }

  Tensors outputs() const override { return first_; }

 private:
  const Tensors inputs_ = make_inputs();
  const Update<State> update_;
  std::vector<float> parameter_;
  std::vector<State> m_, v_;
  std::int64_t step_ = 0;
  Tensors first_;  ///< After the first step.
};

/// bytes   for each parameter.
template <typename State>
CaseEntry optimizer_entry(const std::string& name, double bytes, std::vector<std::string> peers,
                          Update<State> update) {
  constexpr double kParameters = 25'557'032;
  return {.name = name,
          .shape = "25.6 M in 161 tensors",
          .bytes = kParameters * bytes,
          .tolerance = 1e-5,
          .peers = std::move(peers),
          .make = [update = std::move(update)](const CaseSetting&) {
            return std::make_unique<OptimizerCase<State>>(update);
          }};
}

/// Adds the entries of moments kept as f32 and as bf16, beside the same peers.
///
/// moments   the bytes of moments among `bytes`.
template <typename MakeUpdate>
void add_entries(const std::string& name, double bytes, double moments,
                 const std::vector<std::string>& peers, const MakeUpdate& update,
                 std::vector<CaseEntry>& entries) {
  entries.push_back(optimizer_entry<float>(name + "/resnet50", bytes, peers, update));
  entries.push_back(
      optimizer_entry<Bf16>(name + "/resnet50_bf16_moments", bytes - moments / 2, peers, update));
}

/// Without first moments; what it keeps of a matrix is less than a moment of each element.
void adafactor_step(const TensorStep<float>& t) {
  float* const none = nullptr;
  if (t.rows == 1) return adafactor({}, t.step, t.gradient, t.v, none, t.parameter, t.size);
  adafactor({}, t.step, {1, t.rows, t.size / t.rows}, t.gradient, t.v, t.m, none, t.parameter);
}

}  // namespace

std::vector<CaseEntry> optimizer_cases() {
  std::vector<CaseEntry> entries;
  const auto adamw_step = [](const auto& t) {
    adamw({}, t.step, t.gradient, t.m, t.v, t.parameter, t.size);
  };
  const auto sgd_step = [](const auto& t) {
    sgd({.momentum = 0.9, .weight_decay = 1e-4}, t.step == 1, t.gradient, t.m, t.parameter, t.size);
  };
  const auto lamb_step = [](const auto& t) {
    lamb({}, t.step, t.gradient, t.m, t.v, t.parameter, t.size);
  };
  const auto lars_step = [](const auto& t) {
    lars({.weight_decay = 1e-4}, t.gradient, t.m, t.parameter, t.size);
  };
  const auto novograd_step = [norms = std::make_shared<std::vector<double>>(1000)](const auto& t) {
    novograd({.weight_decay = 1e-3, .averages_gradients = true}, t.step, t.gradient,
             (*norms)[t.index], t.m, t.parameter, t.size);
  };
  add_entries("adamw", 28, 16, {"torch"}, adamw_step, entries);
  add_entries("sgd", 20, 8, {"torch"}, sgd_step, entries);
  add_entries("lamb", 40, 24, {"timm"}, lamb_step, entries);
  add_entries("lars", 28, 8, {"timm"}, lars_step, entries);
  add_entries("novograd", 24, 8, {"timm"}, novograd_step, entries);
  entries.push_back(optimizer_entry<float>("adafactor/resnet50", 24,
                                           {"pytorch_optimizer", "torch", "timm"}, adafactor_step));
  return entries;
}

}  // namespace trireme::kernels::bench
