#include "packs/speech/metrics/word_error_rate.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

class WordErrorRate : public Metric {
 public:
  WordErrorRate(Decode decode, WordErrorRateOptions options)
      : decode_(std::move(decode)), options_(std::move(options)) {}

  void add(const Batch& outputs) override {
    const std::vector<std::string> references = texts(outputs, options_.references);
    const std::vector<std::string> hypotheses = texts(outputs, options_.hypotheses);
    if (references.size() != hypotheses.size()) {
      refuse_shapes(outputs, options_.references, options_.hypotheses,
                    "give one of each for a sample");
    }
    const auto [substitution, deletion, insertion] = options_.costs;
    const speech::WordErrorOptions options{.costs = {substitution, deletion, insertion},
                                           .ignores_case = options_.ignores_case};
    for (std::size_t i = 0; i < references.size(); ++i) {
      errors_ += speech::count_word_errors(references[i], hypotheses[i], options);
    }
  }

  std::vector<std::pair<std::string, double>> results() override {
    return {{options_.name, errors_.word_error_rate()}};
  }

 private:
  std::vector<std::string> texts(const Batch& outputs, const std::string& name) const {
    const at::Tensor& rows = output_of(outputs, name);
    if (rows.dim() != 2 || rows.is_floating_point()) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("metrics: output '{}' has shape {}{}; give integers [samples, length]", name,
                      shape_text(rows), rows.is_floating_point() ? " of floats" : ""));
    }
    const at::Tensor numbers = labels_of(outputs, name).contiguous();
    const auto* number = numbers.const_data_ptr<std::int64_t>();
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < numbers.size(0); ++i) {
      std::vector<std::int64_t> row(number, number + numbers.size(1));
      number += numbers.size(1);
      if (options_.padding) std::erase(row, *options_.padding);
      texts.push_back(decode_(row));
    }
    return texts;
  }

  Decode decode_;
  WordErrorRateOptions options_;
  speech::WordErrors errors_;
};

}  // namespace

std::unique_ptr<Metric> word_error_rate(Decode decode, WordErrorRateOptions options) {
  if (!decode) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "metrics: word_error_rate has no decode; give the function that makes texts of numbers");
  }
  return std::make_unique<WordErrorRate>(std::move(decode), std::move(options));
}

}  // namespace trireme::metrics
