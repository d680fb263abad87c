#include <vector>

#include "packs/ranking/metrics/log_loss.h"
#include "packs/ranking/metrics/roc_auc.h"
#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

/// scores [n] f32, labels [n] u8 -> auc [1]
Tensors auc(const Tensors& inputs) {
  const auto given = inputs.get<float>("scores");
  std::vector<float> scores(given.begin(), given.end());
  Tensors outputs;
  outputs.add<double>("auc", {1})[0] = ranking::roc_auc(scores, inputs.get<std::uint8_t>("labels"));
  return outputs;
}

/// probabilities [n] f64 or f32, labels [n] u8 -> losses [2]: log loss, normalized entropy
Tensors log_losses(const Tensors& inputs) {
  const auto labels = inputs.get<std::uint8_t>("labels");
  const ranking::LogLoss loss =
      inputs.at("probabilities").dtype == Dtype::kF32
          ? ranking::log_loss(inputs.get<float>("probabilities"), labels)
          : ranking::log_loss(inputs.get<double>("probabilities"), labels);
  Tensors outputs;
  const auto losses = outputs.add<double>("losses", {2});
  losses[0] = loss.mean();
  losses[1] = loss.normalized_entropy();
  return outputs;
}

}  // namespace

void add_ranking(Operations& operations) {
  operations["auc"] = auc;
  operations["log_losses"] = log_losses;
}

}  // namespace trireme::judges
