#include "recipes/t5/classification.h"

#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "recipes/t5/complete.h"
#include "recipes/t5/model.h"

namespace trireme::recipes::t5 {
namespace {

constexpr std::int64_t kShownPairs = 3;

/// Whether greedy decoding gives the targets, the last dimension: it does where each is the most likely one behind those
/// before it.
torch::Tensor is_right(const torch::Tensor& written_BT, const torch::Tensor& targets_BT) {
  return (written_BT == targets_BT).logical_or(targets_BT == kPad).all(-1);
}

Losses losses_of(T5& net, const Batch& batch, const std::vector<std::string>& names) {
  const torch::Tensor& targets_BT = batch["targets"];
  const auto logits_BTV = net->forward(batch["inputs"], targets_BT);
  const TargetLoss loss = target_loss(logits_BTV, targets_BT);
  Losses losses = {sum_loss(loss.sum, loss.weight)};
  add_accuracies(is_right(logits_BTV.argmax(-1), targets_BT), batch["file"], names, losses);
  return losses;
}

/// The same of rows of several samples.
Losses losses_of_rows(T5& net, const Batch& batch, const std::vector<std::string>& names) {
  const torch::Tensor& targets_BMT = batch["targets"];
  const auto logits_BUV = net->forward_rows(batch["inputs"], batch["inputs_segments"], targets_BMT);
  const TargetLoss loss = target_loss(logits_BUV, targets_BMT);
  Losses losses = {sum_loss(loss.sum, loss.weight)};
  const auto written_BMT = logits_BUV.argmax(-1).view_as(targets_BMT);
  add_accuracies_where(batch["inputs_lengths"] > 0, is_right(written_BMT, targets_BMT),
                       batch["file"], names, losses);
  return losses;
}

std::string show(const T5& net, const text::PairToTextSource& source, std::int64_t index,
                 const text::Tokenizer& tokenizer) {
  const auto pair = source.pair(index);
  const auto inputs_BS =
      torch::tensor(std::vector(pair.tokens.begin(), pair.tokens.end()), torch::kInt).unsqueeze(0);
  const auto rows = complete(net, inputs_BS,
                             {.end = tokenizer.end(),
                              .vocabulary = tokenizer.vocabulary_size(),
                              .max_tokens = source.fields()[1].shape[0]});
  return "sample " + std::to_string(index) + ": " +
         source.labels()[static_cast<std::size_t>(pair.label)] +
         " (the model: " + tokenizer.decode(rows[0]) + ")\n  | " + tokenizer.decode(pair.tokens) +
         "\n";
}

std::string show_classes(const T5& net, const text::PairToTextSource& source,
                         const text::Tokenizer& tokenizer) {
  const std::int64_t count = std::min(kShownPairs, source.num_samples());
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    text += show(net, source, i * source.num_samples() / count, tokenizer);
  }
  return text;
}

}  // namespace

Workload make_classification(const Config& config, const ClassifiedTexts& data,
                             const std::optional<data::PackOptions>& rows) {
  Config masked = config;
  masked.masks_padding = true;  // Inputs differ in length.
  const auto show = [tokenizer = data.vocabulary](const T5& net, const auto& source) {
    return show_classes(net, source, tokenizer);
  };
  if (!rows) return make_pair_workload(T5(masked), data, losses_of, show);
  Workload workload = make_pair_workload(T5(masked), data, losses_of_rows, show);
  workload.training = data::pack(workload.training, *rows);
  if (workload.evaluation) workload.evaluation = data::pack(workload.evaluation, *rows);
  return workload;
}

}  // namespace trireme::recipes::t5
