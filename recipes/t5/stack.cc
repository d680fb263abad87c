#include "recipes/t5/stack.h"

#include "packs/text/operators/drop.h"

namespace trireme::recipes::t5 {

EncoderLayerImpl::EncoderLayerImpl(const Config& config) : dropout_(config.dropout) {
  const auto norm = [&] { return Norm(config.d_model, config.norm_epsilon); };
  attention_norm_ = register_module("attention_norm", norm());
  attention_ = register_module("attention", SelfAttention(config));
  feed_forward_norm_ = register_module("feed_forward_norm", norm());
  feed_forward_ = register_module("feed_forward", FeedForward(config));
}

torch::Tensor EncoderLayerImpl::forward(torch::Tensor x_BSC, const torch::Tensor& bias) {
  const auto dropped = [&](const torch::Tensor& y) {
    return text::drop(y, dropout_, is_training());
  };
  x_BSC = x_BSC + dropped(attention_(attention_norm_(x_BSC), bias));
  return x_BSC + dropped(feed_forward_(feed_forward_norm_(x_BSC)));
}

DecoderLayerImpl::DecoderLayerImpl(const Config& config) : dropout_(config.dropout) {
  const auto norm = [&] { return Norm(config.d_model, config.norm_epsilon); };
  attention_norm_ = register_module("attention_norm", norm());
  attention_ = register_module("attention", SelfAttention(config));
  cross_norm_ = register_module("cross_norm", norm());
  cross_ = register_module("cross", CrossAttention(config));
  feed_forward_norm_ = register_module("feed_forward_norm", norm());
  feed_forward_ = register_module("feed_forward", FeedForward(config));
}

torch::Tensor DecoderLayerImpl::forward(torch::Tensor x_BTC, const Shared& shared) {
  const auto dropped = [&](const torch::Tensor& y) {
    return text::drop(y, dropout_, is_training());
  };
  x_BTC = x_BTC + dropped(attention_(attention_norm_(x_BTC), shared.bias));
  x_BTC = x_BTC + dropped(cross_(cross_norm_(x_BTC), shared.memory, shared.pad_bias));
  return x_BTC + dropped(feed_forward_(feed_forward_norm_(x_BTC)));
}

EncoderImpl::EncoderImpl(const Config& config) : dropout_(config.dropout) {
  bias_ = register_module("position_bias", PositionBias(config, Direction::kBoth));
  for (std::int64_t i = 0; i < config.encoder_layers; ++i) layers_->push_back(EncoderLayer(config));
  register_module("layers", layers_);
  norm_ = register_module("norm", Norm(config.d_model, config.norm_epsilon));
}

torch::Tensor EncoderImpl::forward(torch::Tensor x_BSC, const torch::Tensor& pad_bias) {
  auto bias = bias_(x_BSC.size(1));
  if (pad_bias.defined()) bias = bias + pad_bias;
  x_BSC = text::drop(x_BSC, dropout_, is_training());
  for (const auto& layer : *layers_) x_BSC = layer->as<EncoderLayer>()->forward(x_BSC, bias);
  return text::drop(norm_(x_BSC), dropout_, is_training());
}

DecoderImpl::DecoderImpl(const Config& config) : dropout_(config.dropout) {
  bias_ = register_module("position_bias", PositionBias(config, Direction::kBefore));
  for (std::int64_t i = 0; i < config.decoder_layers; ++i) layers_->push_back(DecoderLayer(config));
  register_module("layers", layers_);
  norm_ = register_module("norm", Norm(config.d_model, config.norm_epsilon));
}

torch::Tensor DecoderImpl::forward(torch::Tensor x_BTC, const torch::Tensor& memory_BSC,
                                   const torch::Tensor& pad_bias, const torch::Tensor& own_bias) {
  auto bias = bias_(x_BTC.size(1));
  if (own_bias.defined()) bias = bias + own_bias;
  const DecoderLayerImpl::Shared shared{memory_BSC, bias, pad_bias};
  x_BTC = text::drop(x_BTC, dropout_, is_training());
  for (const auto& layer : *layers_) x_BTC = layer->as<DecoderLayer>()->forward(x_BTC, shared);
  return text::drop(norm_(x_BTC), dropout_, is_training());
}

}  // namespace trireme::recipes::t5
