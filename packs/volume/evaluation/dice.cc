#include "packs/volume/metrics/dice.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

/// The mean of what is not NaN; NaN without any.
struct KnownMean {
  double sum = 0;
  std::int64_t count = 0;

  void add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
  }
  double value() const {
    return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
  }
};

void check_options(std::int64_t num_classes, const DiceOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::kInvalidArgument, "metrics: dice: " + what);
  };
  if (options.first_class < 0 || options.first_class >= num_classes) {
    refuse(fmt::format("first_class is {}; give one of the classes 0 to {}", options.first_class,
                       num_classes - 1));
  }
  const std::set<std::string> names(options.class_names.begin(), options.class_names.end());
  const std::int64_t num_named = num_classes - options.first_class;
  if (!options.class_names.empty() &&
      (std::ssize(options.class_names) != num_named || std::ssize(names) != num_named)) {
    refuse(fmt::format("class_names has {} different names; give {}, of the classes {} to {}",
                       names.size(), num_named, options.first_class, num_classes - 1));
  }
}

class Dice : public Metric {
 public:
  Dice(std::int64_t num_classes, DiceOptions options)
      : num_classes_(num_classes),
        options_(std::move(options)),
        of_classes_(static_cast<std::size_t>(num_classes - options_.first_class)) {}

  void add(const Batch& outputs) override {
    const at::Tensor& predictions = output_of(outputs, options_.predictions);
    const at::Tensor& labels = output_of(outputs, options_.labels);
    if (predictions.sizes() != labels.sizes() || (labels.dim() != 3 && labels.dim() != 4)) {
      refuse_shapes(outputs, options_.predictions, options_.labels,
                    "give labels [samples, depth, height, width] or [samples, height, width], both "
                    "alike; those of scores "
                    "are scores.argmax(1)");
    }
    const at::Tensor found = as_i32(predictions, options_.predictions);
    const at::Tensor truth = as_i32(labels, options_.labels);
    for (std::int64_t i = 0; i < labels.size(0); ++i) add_case(found[i], truth[i]);
  }

  std::vector<std::pair<std::string, double>> results() override {
    std::vector<std::pair<std::string, double>> results = {{options_.name, of_cases_.value()}};
    for (std::size_t c = 0; c < options_.class_names.size(); ++c) {
      if (of_classes_[c].count == 0) continue;
      results.emplace_back(options_.name + " " + options_.class_names[c], of_classes_[c].value());
    }
    return results;
  }

 private:
  static at::Tensor as_i32(const at::Tensor& labels, const std::string& name) {
    const auto refuse = [&](const std::string& what) {
      throw Error(ErrorKind::kInvalidArgument, "metrics: output '" + name + "' has " + what);
    };
    if (labels.is_floating_point()) refuse("floats; give integers or bool");
    const at::Tensor narrow = labels.to(at::kInt);
    if (!narrow.eq(labels).all().item<bool>()) refuse("labels that do not fit 32 bits");
    return narrow.contiguous();
  }

  void add_case(const at::Tensor& found, const at::Tensor& truth) {
    const auto view = [](const at::Tensor& labels) {
      const std::int64_t depth = labels.dim() == 3 ? labels.size(0) : 1;
      return volume::VolumeView<std::int32_t>{
          {depth, labels.size(-2), labels.size(-1)},
          {labels.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(labels.numel())}};
    };
    const auto classes = volume::dice_counts(num_classes_, view(found), view(truth));
    KnownMean of_case;
    for (std::size_t c = 0; c < of_classes_.size(); ++c) {
      const auto place = c + static_cast<std::size_t>(options_.first_class);
      const double dice = classes[place].dice(options_.smoothing);
      of_case.add(dice);
      of_classes_[c].add(dice);
    }
    of_cases_.add(of_case.value());
  }

  std::int64_t num_classes_;
  DiceOptions options_;
  KnownMean of_cases_;
  std::vector<KnownMean> of_classes_;  ///< Of those that count.
};

}  // namespace

std::unique_ptr<Metric> dice(std::int64_t num_classes, DiceOptions options) {
  check_options(num_classes, options);
  return std::make_unique<Dice>(num_classes, std::move(options));
}

}  // namespace trireme::metrics
