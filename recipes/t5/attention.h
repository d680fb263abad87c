#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "recipes/t5/config.h"
#include "recipes/t5/projection.h"

namespace trireme::recipes::t5 {

// Dims: B batch, T queries, S keys, C channels of the model, H heads, D channels of a head.

/// Attention of several heads without 1/sqrt(D): the initial weights of the queries are smaller
/// instead. What both kinds have in common.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const Config& config);

 protected:
  /// q_BTX, k_BSX, v_BSX   X = H x D.
  /// bias                  added to the scores; broadcasts to [B, H, T, S]; may be undefined.
  /// Returns               [B, T, C].
  torch::Tensor attend(const torch::Tensor& q_BTX, const torch::Tensor& k_BSX,
                       const torch::Tensor& v_BSX, const torch::Tensor& bias);

 private:
  torch::Tensor heads_of(const torch::Tensor& x_BTX) const;

  Config config_;
  Projection output_{nullptr};
};

/// Positions attend to each other.
class SelfAttentionImpl : public AttentionImpl {
 public:
  explicit SelfAttentionImpl(const Config& config);

  /// x_BTC -> [B, T, C]; bias as `attend` takes it.
  torch::Tensor forward(const torch::Tensor& x_BTC, const torch::Tensor& bias);

 private:
  Projection query_key_value_{nullptr};
};
TORCH_MODULE(SelfAttention);

/// Positions attend to what the encoder made of the inputs.
class CrossAttentionImpl : public AttentionImpl {
 public:
  explicit CrossAttentionImpl(const Config& config);

  /// x_BTC, memory_BSC -> [B, T, C]; bias as `attend` takes it.
  torch::Tensor forward(const torch::Tensor& x_BTC, const torch::Tensor& memory_BSC,
                        const torch::Tensor& bias);

 private:
  Projection query_{nullptr}, key_value_{nullptr};
};
TORCH_MODULE(CrossAttention);

}  // namespace trireme::recipes::t5
