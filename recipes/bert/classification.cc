#include "recipes/bert/classification.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <utility>
#include <vector>

#include "recipes/bert/classifier.h"
#include "recipes/bert/examples.h"
#include "recipes/options/accuracies.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kShownPairs = 3;

Losses losses_of(Classifier& net, const Batch& batch, const std::vector<std::string>& names) {
  const auto logits_BK = net->logits(
      {.tokens_BS = batch["tokens"], .types_BS = batch["types"], .lengths_B = batch["length"]});
  const auto labels_B = batch["label"].to(torch::kLong);
  Losses losses = {mean_loss(torch::nn::functional::cross_entropy(logits_BK, labels_B))};
  add_accuracies(logits_BK.argmax(1) == labels_B, batch["file"],
                 net->is_training() ? std::vector<std::string>() : names, losses);
  return losses;
}

}  // namespace

ClassifyData read_classify_data(const ClassifyOptions& options, const text::WordPieces& pieces,
                                std::int64_t length) {
  text::LabelledPairOptions pairs{
      .length = length, .columns = columns_of(options, "bert"), .labels = options.labels};
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
