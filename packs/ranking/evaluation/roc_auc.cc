#include "packs/ranking/metrics/roc_auc.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

constexpr std::size_t kMostRanks = 1 << 24;  // whole numbers that f32 tells apart

/// Scores in the same order, ties and all, as f32: those that do not fit are replaced by their ranks.
std::vector<float> as_f32(const std::vector<double>& scores) {
  std::vector<float> narrow(scores.begin(), scores.end());
  const bool has_nan = std::ranges::any_of(narrow, [](float score) { return std::isnan(score); });
  if (has_nan || std::ranges::equal(narrow, scores))
    return narrow;  // NaN is refused where it is counted
  std::vector<double> values(scores);
  std::ranges::sort(values);
  const auto [end, last] = std::ranges::unique(values);
  values.erase(end, last);
  if (values.size() > kMostRanks) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("metrics: an AUC of f64 scores with {} different values, at most {} "
                            "can be ranked; give them as "
                            "f32",
                            values.size(), kMostRanks));
  }
  std::ranges::transform(scores, narrow.begin(), [&](double score) {
    return static_cast<float>(std::ranges::lower_bound(values, score) - values.begin());
  });
  return narrow;
}

/// Scores and classes of all samples, of one of the labels that each has.
struct Column {
  std::vector<float> scores;        ///< Of f32 and less,
  std::vector<double> wide_scores;  ///< or of f64.
  std::vector<std::uint8_t> labels;
};

class RocAuc : public Metric {
 public:
  explicit RocAuc(RocAucOptions options) : options_(std::move(options)) {}

  void add(const Batch& outputs) override {
    const at::Tensor labels = labels_of(outputs, options_.labels);
    at::Tensor scores = output_of(outputs, options_.scores);
    if (scores.dim() == labels.dim() + 1 && scores.size(-1) == 1) scores = scores.squeeze(-1);
    const bool fits = scores.sizes() == labels.sizes() && scores.is_floating_point() &&
                      (scores.dim() == 1 || scores.dim() == 2);
    if (!fits) {
      refuse_shapes(outputs, options_.scores, options_.labels,
                    "give floats [samples] of two classes or [samples, labels] of several labels, "
                    "both alike");
    }
    check_labels(labels, 2, options_.labels);
    const std::int64_t num_samples = labels.size(0);
    const std::int64_t num_columns = labels.dim() == 2 ? labels.size(1) : 1;
    columns_.resize(static_cast<std::size_t>(num_columns));
    const at::Tensor scores_LN = scores.reshape({num_samples, num_columns}).t();
    const at::Tensor labels_LN = labels.to(at::kByte).reshape({num_samples, num_columns}).t();
    for (std::int64_t l = 0; l < num_columns; ++l) {
      append(scores_LN[l], labels_LN[l], columns_[static_cast<std::size_t>(l)]);
    }
  }

  std::vector<std::pair<std::string, double>> results() override {
    double sum = 0;
    for (Column& column : columns_) {
      if (!column.wide_scores.empty()) column.scores = as_f32(column.wide_scores);
      sum += ranking::roc_auc(column.scores, column.labels);
      column = {};
    }
    return {{options_.name, columns_.empty() ? std::numeric_limits<double>::quiet_NaN()
                                             : sum / static_cast<double>(columns_.size())}};
  }

 private:
  static void append(const at::Tensor& scores, const at::Tensor& labels, Column& column) {
    const auto add_to = [](const at::Tensor& values, auto& all) {
      using T = std::decay_t<decltype(all)>::value_type;
      const auto dense = values.contiguous();
      const std::span<const T> some(dense.const_data_ptr<T>(),
                                    static_cast<std::size_t>(dense.numel()));
      all.insert(all.end(), some.begin(), some.end());
    };
    if (scores.scalar_type() == at::kDouble) {
      add_to(scores, column.wide_scores);
    } else {
      add_to(scores.to(at::kFloat), column.scores);
    }
    add_to(labels, column.labels);
  }

  RocAucOptions options_;
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<Metric> roc_auc(RocAucOptions options) {
  return std::make_unique<RocAuc>(std::move(options));
}

}  // namespace trireme::metrics
