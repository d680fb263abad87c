#include "recipes/bert/classification.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <iterator>
#include <string>
#include <vector>

#include "recipes/bert/classifier.h"
#include "recipes/bert/examples.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kShownPairs = 3;

Losses losses_of(Classifier& net, const Batch& batch, const std::vector<std::string>& names) {
  const auto logits_BK = net->logits(
      {.tokens_BS = batch["tokens"], .types_BS = batch["types"], .lengths_B = batch["length"]});
  const auto labels_B = batch["label"].to(torch::kLong);
  Losses losses = {mean_loss(torch::nn::functional::cross_entropy(logits_BK, labels_B))};
  add_accuracies(logits_BK.argmax(1) == labels_B, batch["file"], names, losses);
  return losses;
}

}  // namespace

Workload make_classification(const BertConfig& config, const ClassifiedSequences& data) {
  const auto show = [pieces = data.vocabulary](const Classifier& net, const auto& source) {
    return show_classes(net, source, pieces, kShownPairs);
  };
  return make_pair_workload(Classifier(config, std::ssize(data.training->labels())), data,
                            losses_of, show);
}

}  // namespace trireme::recipes::bert
