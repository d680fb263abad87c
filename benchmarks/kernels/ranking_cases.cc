#include "benchmarks/kernels/ranking_cases.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/kernels/random_values.h"
#include "packs/ranking/metrics/log_loss.h"
#include "packs/ranking/metrics/roc_auc.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels::bench {
namespace {

/// Which scores a model gives: even ones, those of one that is sure (nearly all within 2^-10 of 1,
/// many equal), or of one in bf16 (some hundred values).
enum class Scores : std::uint8_t { kEven, kSure, kTied };

struct AucForm {
  Scores scores = Scores::kEven;
  bool is_grouped = false;  ///< By the way that ranks take, here one.
};

/// As a group of one rank.
struct OneRank final : ranking::CountGroup {
  void sum(std::span<std::uint64_t>) override {}
};

class AucCase final : public Case {
 public:
  AucCase(std::int64_t n, const AucForm& form, const CaseSetting& setting)
      : form_(form), sorted_(n), spread_(on_threads(setting.num_threads)) {
    const auto scores = inputs_.add<float>("scores", {n});
    const auto labels = inputs_.add<std::uint8_t>("labels", {n});
    fill_normal(scores, 1);
    for (std::int64_t i = 0; i < n; ++i) {
      labels[i] = i % 4 == 0;
      const float logit = scores[i] + static_cast<float>(labels[i]);
      const float probability =
          1 / (1 + std::exp(form.scores == Scores::kSure ? -10 - 2 * logit : -logit));
      scores[i] = form.scores == Scores::kTied ? to_f32(to_bf16(probability)) : probability;
    }
  }

  const Tensors& inputs() const override { return inputs_; }

  /// With the copy that keeps the inputs.
  void run() override {
    std::ranges::copy(inputs_.get<float>("scores"), sorted_.begin());
    const auto labels = inputs_.get<std::uint8_t>("labels");
    OneRank group;
    auc_ = form_.is_grouped ? ranking::roc_auc(sorted_, labels, group, spread_)
                            : ranking::roc_auc(sorted_, labels, spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<double>("auc", {1})[0] = auc_;
    return outputs;
  }

 private:
  const AucForm form_;
  Tensors inputs_;
  std::vector<float> sorted_;
  const Spread spread_;
  double auc_ = 0;
};

class LogLossCase final : public Case {
 public:
  LogLossCase(std::int64_t n, const CaseSetting& setting)
      : spread_(on_threads(setting.num_threads)) {
    fill_even(inputs_.add<float>("probabilities", {n}), 1, 0.001F, 0.999F);
    const auto labels = inputs_.add<std::uint8_t>("labels", {n});
    for (std::int64_t i = 0; i < n; ++i) labels[i] = i % 4 == 0;
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    loss_ = ranking::log_loss(inputs_.get<float>("probabilities"),
                              inputs_.get<std::uint8_t>("labels"), spread_);
  }

  Tensors outputs() const override {
    Tensors outputs;
    outputs.add<double>("loss", {1})[0] = loss_.mean();
    return outputs;
  }

 private:
  Tensors inputs_;
  const Spread spread_;
  ranking::LogLoss loss_;
};

CaseEntry auc_entry(const std::string& variant, const std::string& shape, const AucForm& form) {
  return {.name = "auc/" + variant,
          .shape = "10,000,000 scores" + shape,
          .bytes = 1e7 * 29,
          .tolerance = 1e-12,
          .peers = {"numpy", "numpy_packed", "sklearn"},
          .make = [form](const CaseSetting& setting) {
            return std::make_unique<AucCase>(10'000'000, form, setting);
          }};
}

}  // namespace

std::vector<CaseEntry> ranking_cases() {
  return {auc_entry("10m", "", {}),
          auc_entry("10m_sure", ", nearly all about 1", {.scores = Scores::kSure}),
          auc_entry("10m_tied", " of bf16, many equal", {.scores = Scores::kTied}),
          auc_entry("10m_group", ", a group of one", {.is_grouped = true}),
          {.name = "log_loss/10m",
           .shape = "10,000,000 probabilities",
           .bytes = 1e7 * 5,
           .tolerance = 1e-5,  // peers add up in f32
           .peers = {"torch", "sklearn"},
           .make = [](const CaseSetting& setting) {
             return std::make_unique<LogLossCase>(10'000'000, setting);
           }}};
}

}  // namespace trireme::kernels::bench
