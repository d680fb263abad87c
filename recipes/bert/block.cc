#include "recipes/bert/block.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include "packs/text/operators/attention.h"
#include "packs/text/operators/drop.h"
#include "recipes/bert/tokens.h"

namespace trireme::recipes::bert {
namespace {

/// Attention of heads that share the rows' channels, [N, 3 C] -> [N, C].
torch::Tensor attend(const torch::Tensor& query_key_value, const TokenView& tokens,
                     const torch::Tensor& like_BSC, const BertConfig& config, double dropout) {
  const std::vector<std::int64_t> parts = {3, config.heads, config.channels / config.heads};
  text::AttentionOptions options{.drop_probability = dropout};
  if (tokens.is_unpadded()) {
    const auto qkv = query_key_value.unflatten(-1, parts).unbind(1);
    return text::packed_attention(qkv[0], qkv[1], qkv[2], tokens.offsets(), options).flatten(1);
  }
  options.lengths = tokens.lengths();
  const auto rows_BSX = query_key_value.unflatten(0, {like_BSC.size(0), like_BSC.size(1)});
  const auto qkv = rows_BSX.unflatten(-1, parts).unbind(2);
  return text::attention(qkv[0], qkv[1], qkv[2], options).flatten(2).flatten(0, 1);
}

}  // namespace

torch::nn::Linear make_linear(std::int64_t inputs, std::int64_t outputs) {
  torch::nn::Linear linear(inputs, outputs);
  torch::nn::init::normal_(linear->weight, 0, 0.02);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

torch::nn::LayerNorm make_norm(const BertConfig& config) {
  return torch::nn::LayerNorm(
      torch::nn::LayerNormOptions({config.channels}).eps(config.norm_epsilon));
}

BlockImpl::BlockImpl(const BertConfig& config) : config_(config) {
  const std::int64_t c = config.channels;
  query_key_value_ = register_module("query_key_value", make_linear(c, 3 * c));
  attention_output_ = register_module("attention_output", make_linear(c, c));
  attention_norm_ = register_module("attention_norm", make_norm(config));
  inner_ = register_module("inner", make_linear(c, config.inner));
  output_ = register_module("output", make_linear(config.inner, c));
  norm_ = register_module("norm", make_norm(config));
}

torch::Tensor BlockImpl::drop(const torch::Tensor& x) const {
  return text::drop(x, config_.dropout, is_training());
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x_BSC, const torch::Tensor& lengths_B) {
  const TokenView tokens(lengths_B, x_BSC.size(1), config_.is_unpadded);
  auto x_NC = tokens.pack(x_BSC);
  const auto context_NC =
      attend(query_key_value_(x_NC), tokens, x_BSC, config_, is_training() ? config_.dropout : 0);
  x_NC = attention_norm_(x_NC + drop(attention_output_(context_NC)));
  x_NC = norm_(x_NC + drop(output_(torch::gelu(inner_(x_NC)))));
  return tokens.unpack(x_NC, x_BSC);
}

}  // namespace trireme::recipes::bert
