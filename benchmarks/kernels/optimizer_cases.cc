#include "benchmarks/kernels/optimizer_cases.h"

#include <functional>
#include <memory>
#include <type_traits>

#include "benchmarks/kernels/optimizer_case.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels::bench {
namespace {

/// ResNet-50's: 53 convolutions, their norms' weights and biases, the last layer.
std::vector<ParameterShape> resnet50_shapes() {
  std::vector<ParameterShape> shapes;
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

CaseEntry optimizer_entry(const std::string& name, double bytes, std::vector<std::string> peers,
                          const std::function<std::unique_ptr<Case>(const CaseSetting&)>& make) {
  constexpr double kParameters = 25'557'032;
  return {.name = name,
          .shape = "25.6 M in 161 tensors",
          .bytes = kParameters * bytes,
          .tolerance = kChangeTolerance,
          .tolerances = {{"moment", kMomentTolerance}},
          .peers = std::move(peers),
          .make = make};
}

/// Adds the entries of moments kept as f32 and as bf16, beside the same peers.
///
/// bytes     for each parameter; moments: those of moments among them.
template <typename MakeUpdate>
void add_entries(const std::string& name, double bytes, double moments,
                 const std::vector<std::string>& peers, const MakeUpdate& update,
                 std::vector<CaseEntry>& entries) {
  entries.push_back(
      optimizer_entry(name + "/resnet50", bytes, peers, [update](const CaseSetting& setting) {
        return make_optimizer_case<float>(resnet50_shapes(), setting, update);
      }));
  entries.push_back(optimizer_entry(name + "/resnet50_bf16_moments", bytes - moments / 2, peers,
                                    [update](const CaseSetting& setting) {
                                      return make_optimizer_case<Bf16>(resnet50_shapes(), setting,
                                                                       update);
                                    }));
  entries.back().tolerance = kRoundedChangeTolerance;
}

/// Without first moments; what it keeps of a matrix is less than a moment of each element.
void adafactor_step(const OptimizerStep<float>& t) {
  float* const none = nullptr;
  if (t.rows == 1) return adafactor({}, t.step, t.gradient, t.v, none, t.parameter, t.size);
  adafactor({}, t.step, {1, t.rows, t.size / t.rows}, t.gradient, t.v, t.m, none, t.parameter);
}

}  // namespace

std::vector<CaseEntry> optimizer_cases() {
  std::vector<CaseEntry> entries;
  // Decay and rates are large enough to be seen in what is compared; they take no time.
  const auto adamw_step = [](const auto& t) {
    const AdamwOptions options{.weight_decay = 1};
    if constexpr (std::is_same_v<std::remove_pointer_t<decltype(t.m)>, float>) {
      adamw(options, t.step, t.gradient, t.m, t.v, t.parameter, t.size, nullptr, t.spread);
    } else {
      adamw(options, t.step, t.gradient, t.m, t.v, t.parameter, t.size, t.spread);
    }
  };
  const auto sgd_step = [](const auto& t) {
    sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1}, t.step == 1, t.gradient, t.m,
        t.parameter, t.size, t.spread);
  };
  const auto lamb_step = [](const auto& t) {
    lamb({.weight_decay = 1}, t.step, t.gradient, t.m, t.v, t.parameter, t.size, t.spread);
  };
  const auto lars_step = [](const auto& t) {
    lars({.weight_decay = 0.1}, t.gradient, t.m, t.parameter, t.size, t.spread);
  };
  const auto novograd_step = [norms = std::make_shared<std::vector<double>>(1000)](const auto& t) {
    novograd({.learning_rate = 10, .weight_decay = 1e-2, .averages_gradients = true}, t.step,
             t.gradient, (*norms)[t.index], t.m, t.parameter, t.size, t.spread);
  };
  add_entries("adamw", 28, 16, {"torch"}, adamw_step, entries);
  add_entries("sgd", 20, 8, {"torch"}, sgd_step, entries);
  add_entries("lamb", 40, 24, {"timm"}, lamb_step, entries);
  add_entries("lars", 28, 8, {"timm"}, lars_step, entries);
  add_entries("novograd", 24, 8, {"timm"}, novograd_step, entries);
  entries.push_back(
      optimizer_entry("adafactor/resnet50", 24, {"pytorch_optimizer", "torch", "timm"},
                      [](const CaseSetting& setting) {
                        return make_optimizer_case<float>(resnet50_shapes(), setting,
                                                          adafactor_step, HasMoment::kNo);
                      }));
  entries.back().tolerance = 1e-2;  // its peers round means, not sums
  return entries;
}

}  // namespace trireme::kernels::bench
