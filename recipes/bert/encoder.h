#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "recipes/bert/block.h"
#include "recipes/bert/config.h"

namespace trireme::recipes::bert {

// Dims: B batch, S positions, C channels.

/// Sequences of tokens; padding is behind them.
struct Sequences {
  torch::Tensor tokens_BS;  ///< i32 or i64, padding too.
  torch::Tensor types_BS;   ///< Segment of each token.
  torch::Tensor lengths_B;  ///< Tokens of each.
};

/// Tokens, positions and segments as vectors; their sum, normalized.
class EmbeddingsImpl : public torch::nn::Module {
 public:
  explicit EmbeddingsImpl(const BertConfig& config);
  torch::Tensor forward(const Sequences& sequences);  ///< [B, S, C].

  torch::nn::Embedding tokens{nullptr};  ///< Its matrix makes logits too.

 private:
  BertConfig config_;
  torch::nn::Embedding positions_{nullptr}, types_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Embeddings);

/// What all models of this recipe begin with, under the same names: embeddings and blocks.
///
/// Source   Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language
///          understanding", NAACL 2019, section 3.
class BertEncoder : public torch::nn::Module {
 public:
  /// [B, S, C]; of padding anything finite.
  torch::Tensor encode(const Sequences& sequences);

  const BertConfig& config() const { return config_; }

 protected:
  /// Errors   those of `check`.
  explicit BertEncoder(const BertConfig& config);

  const Embeddings& embeddings() const { return embeddings_; }

 private:
  BertConfig config_;
  Embeddings embeddings_{nullptr};
  torch::nn::ModuleList blocks_;
};

}  // namespace trireme::recipes::bert
