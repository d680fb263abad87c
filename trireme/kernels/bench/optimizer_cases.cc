#include "trireme/kernels/bench/optimizer_cases.h"

#include <algorithm>
#include <numeric>

#include "trireme/kernels/bench/random_values.h"
#include "trireme/kernels/optimizer/adamw.h"

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

class AdamwCase final : public Case {
 public:
  explicit AdamwCase() {
    const auto start = inputs_.get<float>("parameter");
    parameter_.assign(start.begin(), start.end());
    m_.resize(start.size());
    v_.resize(start.size());
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto gradient = inputs_.get<float>("gradient");
    std::size_t begin = 0;
    ++step_;
    for (const std::int64_t size : inputs_.get<std::int64_t>("sizes")) {
      adamw({}, step_, gradient.data() + begin, m_.data() + begin, v_.data() + begin,
            parameter_.data() + begin, size);
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
  std::vector<float> parameter_, m_, v_;
  std::int64_t step_ = 0;
  Tensors first_;  ///< After the first step.
};

}  // namespace

std::vector<CaseEntry> optimizer_cases() {
  constexpr double kParameters = 25'557'032;
  return {{.name = "adamw/resnet50",
           .shape = "25.6 M in 161 tensors",
           .bytes = kParameters * 28,
           .tolerance = 1e-6,
           .peers = {"torch"},
           .make = [](const CaseSetting&) { return std::make_unique<AdamwCase>(); }}};
}

}  // namespace trireme::kernels::bench
