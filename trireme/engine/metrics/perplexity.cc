// Perplexity of a language model: exp of the mean -ln p of a token.
#include <ATen/Functions.h>

#include <cmath>
#include <limits>

#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

class Perplexity : public Metric {
 public:
  explicit Perplexity(PerplexityOptions options) : options_(std::move(options)) {}

  void add(const Batch& outputs) override {
    const at::Tensor labels = labels_of(outputs, options_.labels);
    const bool is_of_losses = !options_.losses.empty();
    const std::string& name = is_of_losses ? options_.losses : options_.scores;
    const at::Tensor& given = output_of(outputs, name);
    const bool fits = labels.dim() == 2 && given.dim() == (is_of_losses ? 2 : 3) &&
                      given.sizes().slice(0, 2) == labels.sizes() && given.is_floating_point();
    if (!fits) {
      refuse_shapes(outputs, name, options_.labels,
                    "give floats, scores [samples, tokens, vocabulary] or losses [samples, "
                    "tokens], and labels [samples, "
                    "tokens]");
    }
    const at::Tensor is_counted = labels.ne(options_.ignore_index);
    if (!is_of_losses) {
      check_labels(labels.masked_select(is_counted), given.size(-1), options_.labels);
    }
    for (std::int64_t i = 0; i < labels.size(0); ++i) {
      const at::Tensor own = labels[i].masked_select(is_counted[i]);
      const at::Tensor rows = given[i].index({is_counted[i]}).to(at::kDouble);
      add_sample(is_of_losses ? rows : cross_entropy(rows, own));
    }
  }

  std::vector<std::pair<std::string, double>> results() override {
    if (num_tokens_ == 0) return {{options_.name, std::numeric_limits<double>::quiet_NaN()}};
    return {{options_.name, std::exp(sum_ / static_cast<double>(num_tokens_))}};
  }

 private:
  /// Of each token, f64.
  static at::Tensor cross_entropy(const at::Tensor& scores, const at::Tensor& labels) {
    return scores.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).neg();
  }

  /// One token after the other: torch's sum depends on threads.
  void add_sample(const at::Tensor& losses) {
    double sum = 0;
    const auto dense = losses.contiguous();
    const auto* loss = dense.const_data_ptr<double>();
    for (std::int64_t t = 0; t < dense.numel(); ++t) sum += loss[t];
    sum_ += sum;
    num_tokens_ += dense.numel();
  }

  PerplexityOptions options_;
  double sum_ = 0;
  std::int64_t num_tokens_ = 0;
};

}  // namespace

std::unique_ptr<Metric> perplexity(PerplexityOptions options) {
  return std::make_unique<Perplexity>(std::move(options));
}

}  // namespace trireme::metrics
