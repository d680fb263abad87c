#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "recipes/bert/block.h"
#include "recipes/bert/config.h"

namespace trireme::recipes::bert {

// Dims: B batch, S positions, C channels, P predictions of a sequence, M predictions that count,
// V vocabulary.

/// Sequences of tokens; padding is behind them.
struct Sequences {
  torch::Tensor tokens_BS;  ///< i32 or i64, padding too.
  torch::Tensor types_BS;   ///< Segment of each token.
  torch::Tensor lengths_B;  ///< Tokens of each.
};

/// What is asked about them.
struct Questions {
  torch::Tensor positions_BP;  ///< Of hidden tokens; beyond the number of predictions any.
  torch::Tensor hidden_BP;     ///< What they are.
  torch::Tensor counts_B;      ///< Predictions of each sequence.
  torch::Tensor is_random_B;   ///< Whether the second segment comes from elsewhere: 0 or 1.
};

/// Of a batch. 0-dim f32.
struct PretrainingLosses {
  torch::Tensor masked_sum;      ///< Cross-entropy of hidden tokens, nats.
  torch::Tensor masked_correct;  ///< How many the model finds most likely.
  torch::Tensor num_masked;      ///< How many there are.
  torch::Tensor next_mean;       ///< Cross-entropy of `is_random`, nats.
  torch::Tensor next_correct;    ///< Part that is answered rightly.
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

/// The encoder BERT with its two heads: hidden tokens, and whether the second segment follows the
/// first. An ordinary module: it runs on one device and knows of nothing else.
///
/// Source   Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language
///          understanding", NAACL 2019, section 3.
class BertImpl : public torch::nn::Module {
 public:
  /// Errors   those of `check`.
  explicit BertImpl(const BertConfig& config);

  /// [B, S, C]; of padding anything finite.
  torch::Tensor encode(const Sequences& sequences);

  /// Logits [M, V]: of all B x P predictions, of the unpadded model of those that count.
  torch::Tensor masked_logits(const torch::Tensor& x_BSC, const Questions& questions);

  /// Logits [B, 2] that the second segment follows, comes from elsewhere.
  torch::Tensor next_logits(const torch::Tensor& x_BSC);

  PretrainingLosses losses(const Sequences& sequences, const Questions& questions);

  const BertConfig& config() const { return config_; }

 private:
  BertConfig config_;
  Embeddings embeddings_{nullptr};
  torch::nn::ModuleList blocks_;
  torch::nn::Linear pooler_{nullptr}, next_{nullptr};
  torch::nn::Linear transform_{nullptr};
  torch::nn::LayerNorm transform_norm_{nullptr};
  torch::Tensor bias_V_;
};
TORCH_MODULE(Bert);

}  // namespace trireme::recipes::bert
