#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "recipes/bert/config.h"
#include "recipes/bert/encoder.h"

namespace trireme::recipes::bert {

// Dims: B batch, S positions, C channels, P predictions of a sequence, M predictions that count,
// V vocabulary.

/// What is asked about sequences.
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

/// The encoder BERT with its two heads: hidden tokens, and whether the second segment follows the
/// first. An ordinary module: it runs on one device and knows of nothing else.
class BertImpl : public BertEncoder {
 public:
  /// Errors   those of `check`.
  explicit BertImpl(const BertConfig& config);

  /// Logits [M, V]: of all B x P predictions, of the unpadded model of those that count.
  torch::Tensor masked_logits(const torch::Tensor& x_BSC, const Questions& questions);

  /// Logits [B, 2] that the second segment follows, comes from elsewhere.
  torch::Tensor next_logits(const torch::Tensor& x_BSC);

  PretrainingLosses losses(const Sequences& sequences, const Questions& questions);

 private:
  torch::nn::Linear pooler_{nullptr}, next_{nullptr};
  torch::nn::Linear transform_{nullptr};
  torch::nn::LayerNorm transform_norm_{nullptr};
  torch::Tensor bias_V_;
};
TORCH_MODULE(Bert);

}  // namespace trireme::recipes::bert
