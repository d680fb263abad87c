#include "recipes/bert/encoder.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include "packs/text/operators/drop.h"
#include "recipes/bert/tokens.h"

namespace trireme::recipes::bert {
namespace {

torch::nn::Embedding make_embedding(std::int64_t count, const BertConfig& config) {
  torch::nn::Embedding embedding(count, config.channels);
  torch::nn::init::normal_(embedding->weight, 0, 0.02);
  return embedding;
}

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

BertEncoder::BertEncoder(const BertConfig& config) : config_(config) {
  check(config);
  embeddings_ = register_module("embeddings", Embeddings(config));
  for (std::int64_t i = 0; i < config.blocks; ++i) blocks_->push_back(Block(config));
  register_module("blocks", blocks_);
}

torch::Tensor BertEncoder::encode(const Sequences& sequences) {
  auto x_BSC = embeddings_->forward(sequences);
  for (const auto& block : *blocks_) {
    x_BSC = block->as<Block>()->forward(x_BSC, sequences.lengths_B);
  }
  return x_BSC;
}

}  // namespace trireme::recipes::bert
