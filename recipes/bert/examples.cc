#include "recipes/bert/examples.h"

#include <ATen/core/grad_mode.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kShown = 3;

std::string formatted(const char* format, double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, number);
  return buffer;
}

torch::Tensor row_of(std::span<const std::int32_t> numbers) {
  return torch::tensor(std::vector(numbers.begin(), numbers.end()), torch::kInt).unsqueeze(0);
}

/// A batch of one sequence.
Sequences sequence_of(std::span<const text::Token> tokens, std::size_t second) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const auto types = torch::arange(length) >= static_cast<std::int64_t>(second);
  return {.tokens_BS = row_of(tokens),
          .types_BS = types.to(torch::kInt).unsqueeze(0),
          .lengths_B = torch::tensor({length})};
}

/// A few samples, spread over `source`, as `show` has them with the model in eval mode.
template <typename Model, typename Source, typename Show>
std::string show_spread(Model& model, const Source& source, std::int64_t num_samples, Show show) {
  const at::NoGradGuard guard;
  const bool was_training = model->is_training();
  model->eval();
  const std::int64_t count = std::min(num_samples, source.num_samples());
  std::string result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * source.num_samples() / count;
    result += "sample " + std::to_string(index) + ": " + show(index);
  }
  model->train(was_training);
  return result;
}

std::string show(Bert& model, const text::SegmentPair& pair, const text::WordPieces& pieces) {
  const auto x_BSC = model->encode(sequence_of(pair.text.tokens, pair.second));
  const auto count = static_cast<std::int64_t>(pair.text.positions.size());
  const auto logits_MV = model->masked_logits(
      x_BSC, {.positions_BP = row_of(pair.text.positions), .counts_B = torch::tensor({count})});
  const auto [parts, tokens] = logits_MV.softmax(-1).topk(kShown);
  const auto random = model->next_logits(x_BSC).softmax(-1)[0][1].item<double>();
  std::string text = pair.is_random ? "the second part is from elsewhere (the model: "
                                    : "the second part follows (the model: ";
  text += formatted("%.2f", pair.is_random ? random : 1 - random);
  text += ")\n  | " + pieces.decode(pair.text.tokens) + "\n";
  for (std::int64_t i = 0; i < count; ++i) {
    text += "  " + pieces.decode({&pair.text.hidden[static_cast<std::size_t>(i)], 1}) + ":";
    for (std::int64_t k = 0; k < kShown; ++k) {
      const auto token = tokens[i][k].item<text::Token>();
      text += (k == 0 ? " " : ", ") + pieces.decode({&token, 1}) + " " +
              formatted("%.2f", parts[i][k].item<double>());
    }
    text += "\n";
  }
  return text;
}

std::string show(Classifier& model, const text::LabelledRow& pair,
                 const std::vector<std::string>& labels, const text::WordPieces& pieces) {
  const auto parts_K = model->logits(sequence_of(pair.tokens, pair.second)).softmax(-1)[0];
  const auto order_K = parts_K.argsort(/*dim=*/0, /*descending=*/true);
  std::string text = labels[static_cast<std::size_t>(pair.label)] + " (the model:";
  for (std::int64_t k = 0; k < std::min(order_K.size(0), kShown); ++k) {
    const auto label = order_K[k].item<std::int64_t>();
    text += (k == 0 ? " " : ", ") + labels[static_cast<std::size_t>(label)] + " " +
            formatted("%.2f", parts_K[label].item<double>());
  }
  return text + ")\n  | " + pieces.decode(pair.tokens) + "\n";
}

}  // namespace

std::string show_predictions(Bert model, const text::PairSource& source,
                             const text::WordPieces& pieces, std::int64_t num_samples) {
  return show_spread(model, source, num_samples, [&](std::int64_t index) {
    return show(model, source.pair_of({.index = index}), pieces);
  });
}

std::string show_statistics(const text::PairSource& source, const text::WordPieces& pieces,
                            std::int64_t num_samples) {
  std::map<text::Token, std::int64_t> counts;
  std::int64_t num_hidden = 0, num_tokens = 0;
  const std::int64_t count = std::min(num_samples, source.num_samples());
  for (std::int64_t i = 0; i < count; ++i) {
    const text::MaskedText sample = source.pair_of({.index = i}).text;
    num_tokens += std::ssize(sample.tokens);
    num_hidden += std::ssize(sample.hidden);
    for (const text::Token token : sample.hidden) ++counts[token];
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [token, most] = *std::ranges::max_element(counts, by_count);
  return std::to_string(count) + " samples have " +
         formatted("%.1f", static_cast<double>(num_tokens) / static_cast<double>(count)) + " of " +
         std::to_string(source.fields()[0].shape[0]) + " tokens on average; of " +
         std::to_string(num_hidden) + " hidden tokens " +
         formatted("%.2f", 100.0 * static_cast<double>(most) / static_cast<double>(num_hidden)) +
         " % are '" + pieces.decode({&token, 1}) + "'\n";
}

std::string show_classes(Classifier model, const text::LabelledPairSource& source,
                         const text::WordPieces& pieces, std::int64_t num_samples) {
  return show_spread(model, source, num_samples, [&](std::int64_t index) {
    return show(model, source.pair(index), source.labels(), pieces);
  });
}

}  // namespace trireme::recipes::bert
