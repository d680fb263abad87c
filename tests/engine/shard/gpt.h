#pragma once

#include <torch/torch.h>

#include <string>

#include "tests/models/models.h"

namespace trireme::shard::test {

// Dims: B batch, T positions, C channels, H heads, D channels of a head.

/// A block as GPTs have it: one operator for attention, norms of queries and keys whose weights all heads share, a gate that
/// is cut from one product by `split`, a mask that each sample brings.
struct GptBlock : torch::nn::Module {
  explicit GptBlock(int channels, int heads) : heads(heads) {
    const auto weight = [&](const std::string& name, int outputs, int inputs) {
      return register_parameter(name, torch::randn({outputs, inputs}) * 0.2);
    };
    norm1 = register_parameter("norm1", torch::ones({channels}));
    qkv = weight("qkv", 3 * channels, channels);
    qkv_bias = register_parameter("qkv_bias", torch::randn({3 * channels}) * 0.1);
    head_norm = register_parameter("head_norm", torch::rand({channels / heads}) + 0.5);
    out = weight("out", channels, channels);
    out_bias = register_parameter("out_bias", torch::randn({channels}) * 0.1);
    norm2 = register_parameter("norm2", torch::ones({channels}));
    gates = weight("gates", 4 * channels, channels);
    down = weight("down", channels, 2 * channels);
  }

  torch::Tensor forward(const torch::Tensor& x_BTC, const torch::Tensor& mask_BC) {
    const auto B = x_BTC.size(0), T = x_BTC.size(1), C = x_BTC.size(2);
    const auto rows = torch::rms_norm(x_BTC, {C}, norm1);
    const auto parts =
        at::linear(rows, qkv, qkv_bias).unflatten(-1, {3, heads, C / heads}).unbind(2);
    const auto normed = [&](const torch::Tensor& y_BTHD) {
      return torch::rms_norm(y_BTHD, {C / heads}, head_norm).permute({0, 2, 1, 3});
    };
    const auto mixed_BHTD = at::scaled_dot_product_attention(
        normed(parts[0]), normed(parts[1]), parts[2].transpose(1, 2), {}, 0, /*is_causal=*/true);
    const auto y_BTC =
        x_BTC + at::linear(mixed_BHTD.permute({0, 2, 1, 3}).reshape({B, T, C}), out, out_bias);
    const auto both = at::linear(torch::rms_norm(y_BTC, {C}, norm2), gates).split(2 * C, -1);
    const auto gated = torch::silu(both[0]) * both[1] * mask_BC.unsqueeze(1);
    return y_BTC + at::linear(torch::dropout(gated, 0.1, true), down);
  }

  std::int64_t heads;
  torch::Tensor norm1, qkv, qkv_bias, head_norm, out, out_bias, norm2, gates, down;
};

/// Two of them between a table of tokens and a head.
struct Gpt : torch::nn::Module {
  Gpt() {
    tokens = register_module("tokens", torch::nn::Embedding(20, 16));
    for (const std::string name : {"first", "second"}) {
      blocks.push_back(register_module(name, std::make_shared<GptBlock>(16, 4)));
    }
    head = register_module("head", torch::nn::Linear(16, 20));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x_BTC = tokens(batch["tokens"]);
    for (const auto& block : blocks) x_BTC = block->forward(x_BTC, batch["mask"]);
    return torch::nn::functional::cross_entropy(head(x_BTC).flatten(0, 1),
                                                batch["targets"].flatten());
  }

  torch::nn::Embedding tokens{nullptr};
  std::vector<std::shared_ptr<GptBlock>> blocks;
  torch::nn::Linear head{nullptr};
};

inline models::TestModel make_gpt() {
  torch::manual_seed(11);
  return {make_model(std::make_shared<Gpt>()), [](std::int64_t size, std::uint64_t seed) {
            torch::manual_seed(seed);
            Batch batch;
            batch.set("tokens", torch::randint(20, {size, 6}));
            batch.set("targets", torch::randint(20, {size, 6}));
            batch.set("mask", torch::rand({size, 32}));
            return batch;
          }};
}

}  // namespace trireme::shard::test
