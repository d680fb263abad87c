#include "recipes/bert/classification.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "recipes/bert/classifier.h"
#include "recipes/bert/examples.h"
#include "trireme/error.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kShownPairs = 3;

/// A name for each file: its own without folder and ending, or the whole path where two have that.
std::vector<std::string> names_of(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names;
  for (const auto& file : files) {
    const auto has_name = [&](const auto& other) { return other.stem() == file.stem(); };
    names.push_back(std::ranges::count_if(files, has_name) == 1 ? file.stem().string()
                                                                : file.string());
  }
  return names;
}

Losses losses_of(Classifier& net, const Batch& batch, const std::vector<std::string>& names) {
  const auto logits_BK = net->logits(
      {.tokens_BS = batch["tokens"], .types_BS = batch["types"], .lengths_B = batch["length"]});
  const auto labels_B = batch["label"].to(torch::kLong);
  const auto is_right_B = logits_BK.argmax(1) == labels_B;
  Losses losses = {mean_loss(torch::nn::functional::cross_entropy(logits_BK, labels_B)),
                   metric(mean_loss(is_right_B.to(torch::kFloat).mean()), "accuracy")};
  if (net->is_training() || names.size() < 2) return losses;
  for (std::size_t f = 0; f < names.size(); ++f) {
    const auto is_of_file_B = batch["file"] == static_cast<std::int64_t>(f);
    const auto num_right = is_right_B.logical_and(is_of_file_B).sum().to(torch::kFloat);
    losses.push_back(metric(sum_loss(num_right, is_of_file_B.sum()), names[f] + "_accuracy"));
  }
  return losses;
}

}  // namespace

ClassifyData read_classify_data(const ClassifyOptions& options, const text::WordPieces& pieces,
                                std::int64_t length) {
  const auto& columns = options.columns;
  if (columns.size() != 3) {
    throw Error(ErrorKind::kInvalidArgument,
                "--bert-classify-columns takes three names, of the first text, the second text and "
                "the label, got " +
                    std::to_string(columns.size()));
  }
  text::LabelledPairOptions pairs{
      .length = length, .columns = {columns[0], columns[1], columns[2]}, .labels = options.labels};
  ClassifyData data{
      .pieces = pieces,
      .training = std::make_shared<text::LabelledPairSource>(options.training, pieces, pairs),
      .held_out = nullptr};
  if (options.held_out.empty()) return data;
  pairs.labels = data.training->labels();
  data.held_out = std::make_shared<text::LabelledPairSource>(options.held_out, pieces, pairs);
  return data;
}

Workload make_classification(const BertConfig& config, const ClassifyData& data) {
  Classifier net(config, std::ssize(data.training->labels()));
  std::vector<std::string> names;
  if (data.held_out) names = names_of(data.held_out->files());
  Workload workload{.model = make_model(net.ptr(),
                                        [net, names](const Batch& batch) mutable {
                                          return losses_of(net, batch, names);
                                        }),
                    .training = data.training,
                    .evaluation = data.held_out};
  if (data.held_out) {
    workload.examples = [net, held_out = data.held_out, pieces = data.pieces] {
      return show_classes(net, *held_out, pieces, kShownPairs) + show_frequent_labels(*held_out);
    };
  }
  return workload;
}

}  // namespace trireme::recipes::bert
