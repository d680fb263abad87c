#include "trireme/kernels/bench/ranking_cases.h"

#include <algorithm>
#include <cmath>

#include "trireme/evaluate/ranking/log_loss.h"
#include "trireme/evaluate/ranking/roc_auc.h"
#include "trireme/kernels/bench/random_values.h"

namespace trireme::kernels::bench {
namespace {

class AucCase final : public Case {
 public:
  explicit AucCase(std::int64_t n) : sorted_(n) {
    const auto scores = inputs_.add<float>("scores", {n});
    const auto labels = inputs_.add<std::uint8_t>("labels", {n});
    fill_normal(scores, 1);
    for (std::int64_t i = 0; i < n; ++i) {
      labels[i] = i % 4 == 0;
      scores[i] = 1 / (1 + std::exp(-scores[i] - static_cast<float>(labels[i])));
    }
  }

  const Tensors& inputs() const override { return inputs_; }

  /// With the copy that keeps the inputs.
  void run() override {
    std::ranges::copy(inputs_.get<float>("scores"), sorted_.begin());
    auc_ = evaluate::roc_auc(sorted_, inputs_.get<std::uint8_t>("labels"));
  }

  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<double>("auc", {1})[0] = auc_;
    return outputs;
  }

 private:
  Tensors inputs_;
  std::vector<float> sorted_;
  double auc_ = 0;
};

class LogLossCase final : public Case {
 public:
  explicit LogLossCase(std::int64_t n) {
    fill_even(inputs_.add<float>("probabilities", {n}), 1, 0.001F, 0.999F);
    const auto labels = inputs_.add<std::uint8_t>("labels", {n});
    for (std::int64_t i = 0; i < n; ++i) labels[i] = i % 4 == 0;
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    loss_ = evaluate::log_loss(inputs_.get<float>("probabilities"),
                               inputs_.get<std::uint8_t>("labels"));
  }

  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<double>("loss", {1})[0] = loss_.mean();
    return outputs;
  }

 private:
  Tensors inputs_;
  evaluate::LogLoss loss_;
};

}  // namespace

std::vector<CaseEntry> ranking_cases() {
  return {{.name = "auc/10m",
           .shape = "10,000,000 scores",
           .bytes = 1e7 * 29,
           .tolerance = 1e-12,
           .peers = {"numpy", "sklearn"},
           .make = [](const CaseSetting&) { return std::make_unique<AucCase>(10'000'000); }},
          {.name = "log_loss/10m",
           .shape = "10,000,000 probabilities",
           .bytes = 1e7 * 5,
           .tolerance = 1e-5,  // peers add up in f32
           .peers = {"torch", "sklearn"},
           .make = [](const CaseSetting&) { return std::make_unique<LogLossCase>(10'000'000); }}};
}

}  // namespace trireme::kernels::bench
