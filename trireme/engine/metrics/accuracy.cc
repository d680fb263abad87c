// Accuracy: the share of labels that are predicted.
//
// A label y of scores s_0 .. s_C-1 is above #{c : s_c < s_y} + #{c > y : s_c = s_y} others, and among the first k where it is
// above C - k or more. So of equal scores the first counts, and NaN, which is neither less nor equal, as above all others.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <limits>

#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

class Accuracy : public Metric {
 public:
  Accuracy(AccuracyOptions options, std::int64_t k) : options_(std::move(options)), k_(k) {}

  void add(const Batch& outputs) override {
    const at::Tensor labels = labels_of(outputs, options_.labels);
    const at::Tensor is_counted = labels.ne(options_.ignore_index);
    const at::Tensor is_right = this->is_right(outputs, labels, is_counted);
    num_right_ += is_right.logical_and(is_counted).sum().item<std::int64_t>();
    num_labels_ += is_counted.sum().item<std::int64_t>();
  }

  std::vector<std::pair<std::string, double>> results() override {
    const double share = num_labels_ == 0
                             ? std::numeric_limits<double>::quiet_NaN()
                             : static_cast<double>(num_right_) / static_cast<double>(num_labels_);
    return {{options_.name, share}};
  }

 private:
  at::Tensor is_right(const Batch& outputs, const at::Tensor& labels,
                      const at::Tensor& is_counted) const {
    const at::Tensor& scores = output_of(outputs, options_.scores);
    if (scores.is_floating_point() && scores.isnan().any().item<bool>()) {
      refuse("has a score that is NaN");
    }
    const auto check_range = [&](std::int64_t num_classes) {
      check_labels(labels.masked_select(is_counted), num_classes, options_.labels);
    };
    if (scores.sizes() == labels.sizes()) {
      if (options_.threshold) check_range(2);
      return predictions(scores).eq(labels);
    }
    if (options_.threshold || scores.dim() != labels.dim() + 1 ||
        scores.sizes().slice(0, labels.dim()) != labels.sizes()) {
      refuse_shapes(outputs, options_.scores, options_.labels,
                    options_.threshold ? "with a threshold, scores have the labels' shape"
                                       : "scores have the labels' shape and [.., classes] more");
    }
    const std::int64_t num_classes = scores.size(-1);
    if (k_ >= num_classes) {
      refuse(fmt::format("has {} classes, so the label is always among the first {}", num_classes,
                         k_));
    }
    check_range(num_classes);
    return is_among_first(scores, labels.where(is_counted, at::zeros({}, at::kLong)), k_);
  }

  /// Labels, where there is one number for each.
  at::Tensor predictions(const at::Tensor& scores) const {
    if (options_.threshold) return scores.gt(*options_.threshold);
    if (!scores.is_floating_point() && k_ == 1) return scores;
    refuse("has one number for each label, shape " + shape_text(scores) +
           "; give scores of all classes, or to accuracy a threshold of two: 0.5 of probabilities, "
           "0 of scores before a "
           "sigmoid");
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInvalidArgument, "metrics: output '" + options_.scores + "' " + what);
  }

  AccuracyOptions options_;
  std::int64_t k_;
  std::int64_t num_right_ = 0;
  std::int64_t num_labels_ = 0;
};

}  // namespace

at::Tensor is_among_first(const at::Tensor& scores, const at::Tensor& labels, std::int64_t k) {
  const at::Tensor index = labels.unsqueeze(-1);
  const at::Tensor own = scores.gather(-1, index);
  const at::Tensor is_behind = at::arange(scores.size(-1), index.options()).gt(index);
  const at::Tensor is_below = scores.lt(own).logical_or(scores.eq(own).logical_and(is_behind));
  return is_below.sum(-1).ge(scores.size(-1) - k);
}

std::unique_ptr<Metric> accuracy(AccuracyOptions options) {
  return std::make_unique<Accuracy>(std::move(options), 1);
}

std::unique_ptr<Metric> top_k_accuracy(std::int64_t k, TopKAccuracyOptions options) {
  if (k < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "metrics: k is " + std::to_string(k) + "; give 1 or more");
  }
  AccuracyOptions all{.scores = std::move(options.scores),
                      .labels = std::move(options.labels),
                      .ignore_index = options.ignore_index,
                      .name = std::move(options.name)};
  if (all.name.empty()) all.name = "top" + std::to_string(k) + "_accuracy";
  return std::make_unique<Accuracy>(std::move(all), k);
}

}  // namespace trireme::metrics
