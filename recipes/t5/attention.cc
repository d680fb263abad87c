#include "recipes/t5/attention.h"

#include <torch/types.h>

#include <cmath>

#include "packs/text/operators/drop.h"

namespace trireme::recipes::t5 {
namespace {

std::int64_t width(const Config& config) { return config.heads * config.d_kv; }

ProjectionPart query_part(const Config& config) {
  return {width(config), std::pow(config.d_model * config.d_kv, -0.5)};
}

/// Of the keys, and of the values.
ProjectionPart memory_part(const Config& config) {
  return {width(config), std::pow(config.d_model, -0.5)};
}

}  // namespace

AttentionImpl::AttentionImpl(const Config& config) : config_(config) {
  const ProjectionPart all{config.d_model, std::pow(width(config), -0.5)};
  output_ = register_module("output", Projection(width(config), std::vector{all}));
}

torch::Tensor AttentionImpl::heads_of(const torch::Tensor& x_BTX) const {
  return x_BTX.view({x_BTX.size(0), x_BTX.size(1), config_.heads, config_.d_kv}).transpose(1, 2);
}

torch::Tensor AttentionImpl::attend(const torch::Tensor& q_BTX, const torch::Tensor& k_BSX,
                                    const torch::Tensor& v_BSX, const torch::Tensor& bias) {
  auto scores_BHTS = torch::matmul(heads_of(q_BTX), heads_of(k_BSX).transpose(2, 3));
  if (bias.defined()) scores_BHTS += bias;  // in place: the product is not kept for the backward
  const auto weights_BHTS =
      text::drop(torch::softmax(scores_BHTS, -1), config_.dropout, is_training());
  const auto mixed_BHTD = torch::matmul(weights_BHTS, heads_of(v_BSX));
  return output_(mixed_BHTD.transpose(1, 2).flatten(2));
}

SelfAttentionImpl::SelfAttentionImpl(const Config& config) : AttentionImpl(config) {
  query_key_value_ = register_module(
      "query_key_value",
      Projection(config.d_model,
                 std::vector{query_part(config), memory_part(config), memory_part(config)}));
}

torch::Tensor SelfAttentionImpl::forward(const torch::Tensor& x_BTC, const torch::Tensor& bias) {
  const auto parts = query_key_value_(x_BTC).chunk(3, -1);
  return attend(parts[0], parts[1], parts[2], bias);
}

CrossAttentionImpl::CrossAttentionImpl(const Config& config) : AttentionImpl(config) {
  query_ = register_module("query", Projection(config.d_model, std::vector{query_part(config)}));
  key_value_ = register_module(
      "key_value",
      Projection(config.d_model, std::vector{memory_part(config), memory_part(config)}));
}

torch::Tensor CrossAttentionImpl::forward(const torch::Tensor& x_BTC,
                                          const torch::Tensor& memory_BSC,
                                          const torch::Tensor& bias) {
  const auto parts = key_value_(memory_BSC).chunk(2, -1);
  return attend(query_(x_BTC), parts[0], parts[1], bias);
}

}  // namespace trireme::recipes::t5
