#include "packs/ranking/metrics/log_loss.h"

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

constexpr std::size_t kBlock = 4096;  // of ranking::log_loss

double epsilon_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kBFloat16:
      return 0x1p-7;
    case at::kHalf:
      return 0x1p-10;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

template <typename T>
std::span<const T> values_of(const at::Tensor& dense) {
  return {dense.const_data_ptr<T>(), static_cast<std::size_t>(dense.numel())};
}

class MeanLogLoss : public Metric {
 public:
  explicit MeanLogLoss(LogLossOptions options) : options_(std::move(options)) {}

  void add(const Batch& outputs) override {
    const at::Tensor labels = labels_of(outputs, options_.labels);
    const at::Tensor& output = output_of(outputs, options_.probabilities);
    const bool fits = labels.dim() == 1 && output.dim() >= 1 && output.dim() <= 2 &&
                      output.size(0) == labels.size(0) && output.is_floating_point();
    if (!fits) {
      refuse_shapes(outputs, options_.probabilities, options_.labels,
                    "give floats [samples] or [samples, classes], and labels [samples]");
    }
    num_samples_ += labels.size(0);
    const bool is_wide = output.scalar_type() == at::kDouble;
    const at::Tensor given = is_wide ? output : output.to(at::kFloat);
    if (given.dim() == 2 && given.size(1) > 1) {
      check_labels(labels, given.size(1), options_.labels);
      check_rows(given, std::sqrt(epsilon_of(output.scalar_type())));
      add_of_several(given, labels);
      return;
    }
    check_labels(labels, 2, options_.labels);
    check_range(given);
    if (is_wide) {
      add_of_two(values_of<double>(given.contiguous()), labels, wide_);
    } else {
      add_of_two(values_of<float>(given.contiguous()), labels, narrow_);
    }
  }

  std::vector<std::pair<std::string, double>> results() override {
    empty(wide_);
    empty(narrow_);
    return {{options_.name, num_samples_ == 0 ? std::numeric_limits<double>::quiet_NaN()
                                              : sum_ / static_cast<double>(num_samples_)}};
  }

 private:
  /// Samples of two classes that wait until they are a block of ranking::log_loss: the sum is then that of all samples at
  /// once.
  template <typename T>
  struct Waiting {
    std::vector<T> probabilities;
    std::vector<std::uint8_t> labels;
  };

  template <typename T>
  void add_of_two(std::span<const T> probabilities, const at::Tensor& labels, Waiting<T>& waiting) {
    const at::Tensor dense = labels.to(at::kByte).contiguous();
    const auto classes = values_of<std::uint8_t>(dense);
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
      waiting.probabilities.push_back(probabilities[i]);
      waiting.labels.push_back(classes[i]);
      if (waiting.labels.size() == kBlock) empty(waiting);
    }
  }

  template <typename T>
  void empty(Waiting<T>& waiting) {
    sum_ += ranking::log_loss(waiting.probabilities, waiting.labels).sum;
    waiting.probabilities.clear();
    waiting.labels.clear();
  }

  void add_of_several(const at::Tensor& probabilities, const at::Tensor& labels) {
    const double epsilon = epsilon_of(probabilities.scalar_type());
    const at::Tensor own = probabilities.gather(1, labels.unsqueeze(1)).to(at::kDouble);
    for (const double p : values_of<double>(own.contiguous())) {
      sum_ -= std::log(std::clamp(p, epsilon, 1 - epsilon));
    }
  }

  void check_range(const at::Tensor& probabilities) const {
    const at::Tensor is_good = probabilities.ge(0).logical_and(probabilities.le(1));
    const at::Tensor bad = probabilities.masked_select(is_good.logical_not());
    if (bad.numel() == 0) return;
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("metrics: output '{}' has a probability of {:g}, expected 0 to 1; give "
                            "it after a sigmoid",
                            options_.probabilities, bad[0].item<double>()));
  }

  void check_rows(const at::Tensor& probabilities, double tolerance) const {
    const at::Tensor sums = probabilities.to(at::kDouble).sum(1);
    const at::Tensor is_good =
        sums.sub(1).abs().le(tolerance).logical_and(probabilities.ge(0).all(1));
    const at::Tensor bad = is_good.logical_not().nonzero();
    if (bad.numel() == 0) return;
    const auto row = bad[0].item<std::int64_t>();
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("metrics: output '{}' has a sample with probabilities of sum {:g}, the "
                            "least of them {:g}; give "
                            "them after a softmax",
                            options_.probabilities, sums[row].item<double>(),
                            probabilities[row].min().item<double>()));
  }

  LogLossOptions options_;
  double sum_ = 0;
  std::int64_t num_samples_ = 0;
  Waiting<double> wide_;
  Waiting<float> narrow_;
};

}  // namespace

std::unique_ptr<Metric> log_loss(LogLossOptions options) {
  return std::make_unique<MeanLogLoss>(std::move(options));
}

}  // namespace trireme::metrics
