#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>

#include "trireme/engine/train/batch_reader.h"
#include "trireme/model.h"

namespace trireme::benchmarks {

// Dims: B batch, T positions, C channels, H heads, D channels of a head.

struct EncoderSize {
  std::int64_t width = 256;
  std::int64_t heads = 4;
  std::int64_t positions = 64;
  int layers = 6;
};

/// Pre-norm transformer block, dropout as usual.
struct EncoderBlockImpl : torch::nn::Module {
  explicit EncoderBlockImpl(const EncoderSize& size) : heads(size.heads) {
    using torch::nn::LayerNorm, torch::nn::LayerNormOptions, torch::nn::Linear;
    const std::int64_t C = size.width;
    norm1 = register_module("norm1", LayerNorm(LayerNormOptions({C})));
    norm2 = register_module("norm2", LayerNorm(LayerNormOptions({C})));
    qkv = register_module("qkv", Linear(C, 3 * C));
    out = register_module("out", Linear(C, C));
    up = register_module("up", Linear(C, 4 * C));
    down = register_module("down", Linear(4 * C, C));
    dropout = register_module("dropout", torch::nn::Dropout(0.1));
  }

  torch::Tensor forward(torch::Tensor x_BTC) {
    const auto B = x_BTC.size(0), T = x_BTC.size(1), C = x_BTC.size(2), D = C / heads;
    const auto parts = qkv(norm1(x_BTC)).chunk(3, -1);
    const auto split = [&](const torch::Tensor& y_BTC) {
      return y_BTC.view({B, T, heads, D}).transpose(1, 2);
    };
    const auto scores = torch::matmul(split(parts[0]), split(parts[1]).transpose(-2, -1)) /
                        std::sqrt(static_cast<double>(D));
    const auto mixed = torch::matmul(dropout(torch::softmax(scores, -1)), split(parts[2]));
    x_BTC = x_BTC + dropout(out(mixed.transpose(1, 2).reshape({B, T, C})));
    return x_BTC + dropout(down(torch::gelu(up(norm2(x_BTC)))));
  }

  std::int64_t heads;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  torch::nn::Dropout dropout{nullptr};
};
TORCH_MODULE(EncoderBlock);

struct Encoder : torch::nn::Module {
  explicit Encoder(const EncoderSize& size) {
    for (int i = 0; i < size.layers; ++i) blocks->push_back(EncoderBlock(size));
    register_module("blocks", blocks);
    head = register_module("head", torch::nn::Linear(size.width, size.width));
  }

  torch::Tensor forward(const Batch& batch) {
    auto x_BTC = batch["x"];
    for (const auto& block : *blocks) x_BTC = block->as<EncoderBlock>()->forward(x_BTC);
    return (head(x_BTC) - batch["y"]).square().mean();
  }

  torch::nn::ModuleList blocks;
  torch::nn::Linear head{nullptr};
};

inline Workload make_encoder(const EncoderSize& size) {
  constexpr std::int64_t kSamples = 64;
  const auto x = torch::randn({kSamples, size.positions, size.width});
  return {make_model(std::make_shared<Encoder>(size)), tensor_source({{"x", x}, {"y", x.roll(1)}}),
          nullptr};
}

}  // namespace trireme::benchmarks
