#include "recipes/bert/model.h"

#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/init.h>
#include <torch/types.h>

#include "packs/text/operators/drop.h"
#include "recipes/bert/tokens.h"

namespace trireme::recipes::bert {
namespace {

namespace F = torch::nn::functional;

torch::nn::Embedding make_embedding(std::int64_t count, const BertConfig& config) {
  torch::nn::Embedding embedding(count, config.channels);
  torch::nn::init::normal_(embedding->weight, 0, 0.02);
  return embedding;
}

/// Number of rows whose largest logit is the expected one.
torch::Tensor num_correct(const torch::Tensor& logits, const torch::Tensor& expected) {
  return (logits.argmax(1) == expected).sum().to(torch::kFloat);
}

/// Stands where a prediction does not count.
constexpr std::int64_t kIgnored = -100;

}  // namespace

EmbeddingsImpl::EmbeddingsImpl(const BertConfig& config) : config_(config) {
  tokens = register_module("tokens", make_embedding(config.vocabulary, config));
  positions_ = register_module("positions", make_embedding(config.positions, config));
  types_ = register_module("types", make_embedding(config.types, config));
  norm_ = register_module("norm", make_norm(config));
}

torch::Tensor EmbeddingsImpl::forward(const Sequences& sequences) {
  const std::int64_t length = sequences.tokens_BS.size(1);
  const TokenView view(sequences.lengths_B, length, config_.is_unpadded);
  const auto places_BS = torch::arange(length, torch::kLong).expand_as(sequences.tokens_BS);
  const auto x_NC = tokens(view.pack(sequences.tokens_BS)) + positions_(view.pack(places_BS)) +
                    types_(view.pack(sequences.types_BS));
  const auto normal_NC = text::drop(norm_(x_NC), config_.dropout, is_training());
  if (!view.is_unpadded()) return normal_NC.unflatten(0, {-1, length});
  const auto like_BSC = sequences.tokens_BS.unsqueeze(-1).expand({-1, -1, config_.channels});
  return view.unpack(normal_NC, like_BSC);
}

BertImpl::BertImpl(const BertConfig& config) : config_(config) {
  check(config);
  embeddings_ = register_module("embeddings", Embeddings(config));
  for (std::int64_t i = 0; i < config.blocks; ++i) blocks_->push_back(Block(config));
  register_module("blocks", blocks_);
  transform_ = register_module("transform", make_linear(config.channels, config.channels));
  transform_norm_ = register_module("transform_norm", make_norm(config));
  bias_V_ = register_parameter("masked_bias", torch::zeros({config.vocabulary}));
  pooler_ = register_module("pooler", make_linear(config.channels, config.channels));
  next_ = register_module("next", make_linear(config.channels, 2));
}

torch::Tensor BertImpl::encode(const Sequences& sequences) {
  auto x_BSC = embeddings_->forward(sequences);
  for (const auto& block : *blocks_) {
    x_BSC = block->as<Block>()->forward(x_BSC, sequences.lengths_B);
  }
  return x_BSC;
}

torch::Tensor BertImpl::masked_logits(const torch::Tensor& x_BSC, const Questions& questions) {
  const auto& positions_BP = questions.positions_BP;
  const TokenView view(questions.counts_B, positions_BP.size(1), config_.is_unpadded);
  const auto places_BPC =
      positions_BP.to(torch::kLong).unsqueeze(-1).expand({-1, -1, config_.channels});
  const auto x_MC = view.pack(x_BSC.gather(1, places_BPC));
  const auto y_MC = transform_norm_(torch::gelu(transform_(x_MC)));
  return F::linear(y_MC, embeddings_->tokens->weight, bias_V_);
}

torch::Tensor BertImpl::next_logits(const torch::Tensor& x_BSC) {
  return next_(torch::tanh(pooler_(x_BSC.select(1, 0))));
}

PretrainingLosses BertImpl::losses(const Sequences& sequences, const Questions& questions) {
  const auto x_BSC = encode(sequences);
  const std::int64_t predictions = questions.positions_BP.size(1);
  const TokenView view(questions.counts_B, predictions, config_.is_unpadded);
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
