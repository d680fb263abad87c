#include "recipes/t5/classification.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "recipes/options/accuracies.h"
#include "recipes/t5/complete.h"

namespace trireme::recipes::t5 {
namespace {

constexpr std::int64_t kShownPairs = 3;

/// Whether greedy decoding gives the targets: it does where each is the most likely one behind those before it.
torch::Tensor is_right(const torch::Tensor& logits_BTV, const torch::Tensor& targets_BT) {
  return (logits_BTV.argmax(-1) == targets_BT).logical_or(targets_BT == kPad).all(1);
}

Losses losses_of(T5& net, const Batch& batch, const std::vector<std::string>& names) {
  const torch::Tensor& targets_BT = batch["targets"];
  const auto logits_BTV = net->forward(batch["inputs"], targets_BT);
  const TargetLoss loss = target_loss(logits_BTV, targets_BT);
  Losses losses = {sum_loss(loss.sum, loss.weight)};
  add_accuracies(is_right(logits_BTV, targets_BT), batch["file"],
                 net->is_training() ? std::vector<std::string>() : names, losses);
  return losses;
}

std::string show(const T5& net, const text::PairToTextSource& source, std::int64_t index,
                 const text::Tokenizer& tokenizer) {
  const auto pair = source.pair(index);
  const auto inputs_BS =
      torch::tensor(std::vector(pair.inputs.begin(), pair.inputs.end()), torch::kInt).unsqueeze(0);
  const auto rows = complete(net, inputs_BS,
                             {.end = tokenizer.end(),
                              .vocabulary = tokenizer.vocabulary_size(),
                              .max_tokens = source.fields()[1].shape[0]});
  return "sample " + std::to_string(index) + ": " +
         source.labels()[static_cast<std::size_t>(pair.label)] +
         " (the model: " + tokenizer.decode(rows[0]) + ")\n  | " + tokenizer.decode(pair.inputs) +
         "\n";
}

std::string show_classes(const T5& net, const text::PairToTextSource& source,
                         const text::Tokenizer& tokenizer) {
  const std::int64_t count = std::min(kShownPairs, source.num_samples());
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    text += show(net, source, i * source.num_samples() / count, tokenizer);
  }
  return text + show_frequent_labels(source);
}

}  // namespace

PairData read_pairs(const ClassifyOptions& options, const text::Tokenizer& tokenizer,
                    std::int64_t inputs) {
  text::PairToTextOptions pairs{
      .inputs = inputs, .columns = columns_of(options, "t5"), .labels = options.labels};
  PairData data{
      .tokenizer = tokenizer,
      .training = std::make_shared<text::PairToTextSource>(options.training, tokenizer, pairs),
      .held_out = nullptr};
  if (options.held_out.empty()) return data;
  pairs.labels = data.training->labels();
  data.held_out = std::make_shared<text::PairToTextSource>(options.held_out, tokenizer, pairs);
  return data;
}

Workload make_classification(const Config& config, const PairData& data) {
  Config masked = config;
  masked.masks_padding = true;  // Inputs differ in length.
  T5 net(masked);
  std::vector<std::string> names;
  if (data.held_out) names = names_of(data.held_out->files());
  Workload workload{.model = make_model(net.ptr(),
                                        [net, names](const Batch& batch) mutable {
                                          return losses_of(net, batch, names);
                                        }),
                    .training = data.training,
                    .evaluation = data.held_out};
  if (data.held_out) {
    workload.examples = [net, held_out = data.held_out, tokenizer = data.tokenizer] {
      return show_classes(net, *held_out, tokenizer);
    };
  }
  return workload;
}

}  // namespace trireme::recipes::t5
