#include <vector>

#include "tests/judges/judge.h"
#include "trireme/evaluate/ranking/log_loss.h"
#include "trireme/evaluate/ranking/roc_auc.h"

namespace trireme::judges {
namespace {

/// scores [n] f32, labels [n] u8 -> auc [1]
Tensors auc(const Tensors& inputs) {
  const auto given = inputs.get<float>("scores");
  std::vector<float> scores(given.begin(), given.end());
  Tensors outputs;
  outputs.add<double>("auc", {1})[0] =
      evaluate::roc_auc(scores, inputs.get<std::uint8_t>("labels"));
  return outputs;
}

/// probabilities [n] f64 or f32, labels [n] u8 -> losses [2]: log loss, normalized entropy
Tensors log_losses(const Tensors& inputs) {
  const auto labels = inputs.get<std::uint8_t>("labels");
  const evaluate::LogLoss loss =
      inputs.at("probabilities").dtype == Dtype::kF32
          ? evaluate::log_loss(inputs.get<float>("probabilities"), labels)
          : evaluate::log_loss(inputs.get<double>("probabilities"), labels);
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
