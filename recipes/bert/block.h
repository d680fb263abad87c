#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "recipes/bert/config.h"

namespace trireme::recipes::bert {

// Dims: B batch, S positions, C channels, N rows (tokens.h), H heads, D channels of a head.

/// Linear layer, weights normal with a standard deviation of 0.02, bias 0.
torch::nn::Linear make_linear(std::int64_t inputs, std::int64_t outputs);

torch::nn::LayerNorm make_norm(const BertConfig& config);

/// Self-attention and a feed-forward layer, each with a residual sum and then a norm.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const BertConfig& config);

  /// x_BSC       padding holds anything finite.
  /// lengths_B   tokens of each sequence.
  /// Returns     [B, S, C]; of padding anything finite.
  torch::Tensor forward(const torch::Tensor& x_BSC, const torch::Tensor& lengths_B);

 private:
  torch::Tensor drop(const torch::Tensor& x) const;

  BertConfig config_;
  torch::nn::Linear query_key_value_{nullptr}, attention_output_{nullptr};
  torch::nn::LayerNorm attention_norm_{nullptr};
  torch::nn::Linear inner_{nullptr}, output_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Block);

}  // namespace trireme::recipes::bert
