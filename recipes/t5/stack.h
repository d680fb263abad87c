#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include "recipes/t5/attention.h"
#include "recipes/t5/config.h"
#include "recipes/t5/feed_forward.h"
#include "recipes/t5/norm.h"
#include "recipes/t5/position_bias.h"

namespace trireme::recipes::t5 {

// Dims: B batch, S input positions, T target positions, C channels.

/// x + f(norm(x)) twice: attention, feed-forward.
class EncoderLayerImpl : public torch::nn::Module {
 public:
  explicit EncoderLayerImpl(const Config& config);

  /// x_BSC -> [B, S, C]; bias of the attention.
  torch::Tensor forward(torch::Tensor x_BSC, const torch::Tensor& bias);

 private:
  double dropout_;
  Norm attention_norm_{nullptr}, feed_forward_norm_{nullptr};
  SelfAttention attention_{nullptr};
  FeedForward feed_forward_{nullptr};
};
TORCH_MODULE(EncoderLayer);

/// As EncoderLayer, with attention to the encoder's output in the middle.
class DecoderLayerImpl : public torch::nn::Module {
 public:
  explicit DecoderLayerImpl(const Config& config);

  /// What the layers of a decoder have in common.
  struct Shared {
    torch::Tensor memory;    ///< The encoder's output, [B, S, C].
    torch::Tensor bias;      ///< Of the attention among targets.
    torch::Tensor pad_bias;  ///< Of the attention to the memory; may be undefined.
  };

  /// x_BTC -> [B, T, C].
  torch::Tensor forward(torch::Tensor x_BTC, const Shared& shared);

 private:
  double dropout_;
  Norm attention_norm_{nullptr}, cross_norm_{nullptr}, feed_forward_norm_{nullptr};
  SelfAttention attention_{nullptr};
  CrossAttention cross_{nullptr};
  FeedForward feed_forward_{nullptr};
};
TORCH_MODULE(DecoderLayer);

/// All layers of the encoder, their position bias, and the norm after them.
class EncoderImpl : public torch::nn::Module {
 public:
  explicit EncoderImpl(const Config& config);

  /// x_BSC      embedded inputs -> [B, S, C].
  /// pad_bias   of the inputs, as T5Impl makes it; may be undefined.
  torch::Tensor forward(torch::Tensor x_BSC, const torch::Tensor& pad_bias);

 private:
  double dropout_;
  PositionBias bias_{nullptr};
  torch::nn::ModuleList layers_;
  Norm norm_{nullptr};
};
TORCH_MODULE(Encoder);

/// As Encoder, for targets that see the memory and the targets before them.
class DecoderImpl : public torch::nn::Module {
 public:
  explicit DecoderImpl(const Config& config);

  /// x_BTC        embedded targets, shifted -> [B, T, C].
  /// memory_BSC   the encoder's output.
  /// pad_bias     of the inputs, as T5Impl makes it; may be undefined.
  /// own_bias     of the attention among targets, beside that of their places; may be undefined.
  torch::Tensor forward(torch::Tensor x_BTC, const torch::Tensor& memory_BSC,
                        const torch::Tensor& pad_bias, const torch::Tensor& own_bias = {});

 private:
  double dropout_;
  PositionBias bias_{nullptr};
  torch::nn::ModuleList layers_;
  Norm norm_{nullptr};
};
TORCH_MODULE(Decoder);

}  // namespace trireme::recipes::t5
