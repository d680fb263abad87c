#include "recipes/bert/model.h"

#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include "recipes/bert/tokens.h"

namespace trireme::recipes::bert {
namespace {

namespace F = torch::nn::functional;

/// Number of rows whose largest logit is the expected one.
torch::Tensor num_correct(const torch::Tensor& logits, const torch::Tensor& expected) {
  return (logits.argmax(1) == expected).sum().to(torch::kFloat);
}

/// Stands where a prediction does not count.
constexpr std::int64_t kIgnored = -100;

}  // namespace

BertImpl::BertImpl(const BertConfig& config) : BertEncoder(config) {
  transform_ = register_module("transform", make_linear(config.channels, config.channels));
  transform_norm_ = register_module("transform_norm", make_norm(config));
  bias_V_ = register_parameter("masked_bias", torch::zeros({config.vocabulary}));
  pooler_ = register_module("pooler", make_linear(config.channels, config.channels));
  next_ = register_module("next", make_linear(config.channels, 2));
}

torch::Tensor BertImpl::masked_logits(const torch::Tensor& x_BSC, const Questions& questions) {
  const auto& positions_BP = questions.positions_BP;
  const TokenView view(questions.counts_B, positions_BP.size(1), config().is_unpadded);
  const auto places_BPC =
      positions_BP.to(torch::kLong).unsqueeze(-1).expand({-1, -1, config().channels});
  const auto x_MC = view.pack(x_BSC.gather(1, places_BPC));
  const auto y_MC = transform_norm_(torch::gelu(transform_(x_MC)));
  return F::linear(y_MC, embeddings()->tokens->weight, bias_V_);
}

torch::Tensor BertImpl::next_logits(const torch::Tensor& x_BSC) {
  return next_(torch::tanh(pooler_(x_BSC.select(1, 0))));
}

PretrainingLosses BertImpl::losses(const Sequences& sequences, const Questions& questions) {
  const auto x_BSC = encode(sequences);
  const std::int64_t predictions = questions.positions_BP.size(1);
  const TokenView view(questions.counts_B, predictions, config().is_unpadded);
  auto hidden_BP = questions.hidden_BP.to(torch::kLong);
  if (!view.is_unpadded()) {
    const auto is_beyond_BP =
        torch::arange(predictions, torch::kLong) >= questions.counts_B.unsqueeze(1);
    hidden_BP = hidden_BP.masked_fill(is_beyond_BP, kIgnored);
  }
  const auto hidden_M = view.pack(hidden_BP);
  const auto logits_MV = masked_logits(x_BSC, questions);
  const auto is_random_B = questions.is_random_B.to(torch::kLong);
  const auto next_B2 = next_logits(x_BSC);
  const auto sum = F::CrossEntropyFuncOptions().ignore_index(kIgnored).reduction(torch::kSum);
  return {.masked_sum = F::cross_entropy(logits_MV, hidden_M, sum),
          .masked_correct = num_correct(logits_MV, hidden_M),
          .num_masked = questions.counts_B.sum().to(torch::kFloat),
          .next_mean = F::cross_entropy(next_B2, is_random_B),
          .next_correct = (next_B2.argmax(1) == is_random_B).to(torch::kFloat).mean()};
}

}  // namespace trireme::recipes::bert
