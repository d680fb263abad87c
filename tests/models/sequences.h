#pragma once

#include <torch/torch.h>

#include "trireme/model.h"

namespace trireme::models {

// Dims: B batch, T positions, C channels, H heads, D channels of a head.

/// Pre-norm block: attention with an added bias, dropout, in-place residual sums.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int channels) {
    using torch::nn::LayerNorm, torch::nn::LayerNormOptions, torch::nn::Linear;
    norm1 = register_module("norm1", LayerNorm(LayerNormOptions({channels})));
    qkv = register_module("qkv", Linear(channels, 3 * channels));
    out = register_module("out", Linear(channels, channels));
    norm2 = register_module("norm2", LayerNorm(LayerNormOptions({channels})));
    up = register_module("up", Linear(channels, 2 * channels));
    down = register_module("down", Linear(2 * channels, channels));
    dropout = register_module("dropout", torch::nn::Dropout(0.2));
  }

  torch::Tensor forward(torch::Tensor x_BTC, const torch::Tensor& bias_HTT) {
    const auto B = x_BTC.size(0), T = x_BTC.size(1), C = x_BTC.size(2), H = bias_HTT.size(0);
    const auto D = C / H;
    const auto parts = qkv(norm1(x_BTC)).chunk(3, -1);
    const auto split = [&](const torch::Tensor& y_BTC) {
      return y_BTC.view({B, T, H, D}).transpose(1, 2);
    };
    auto scores = torch::matmul(split(parts[0]), split(parts[1]).transpose(-2, -1));
    scores = scores / std::sqrt(static_cast<double>(D)) + bias_HTT;
    const auto mixed = torch::matmul(dropout(torch::softmax(scores, -1)), split(parts[2]));
    x_BTC = x_BTC + dropout(out(mixed.transpose(1, 2).reshape({B, T, C})));
    auto y_BTC = down(up(norm2(x_BTC)).relu_());
    y_BTC += x_BTC;
    return y_BTC;
  }

  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  torch::nn::Dropout dropout{nullptr};
};
TORCH_MODULE(Block);

/// Language model whose embedding is its head too, with a position bias shared by all blocks.
struct Transformer : torch::nn::Module {
  Transformer() {
    embedding = register_module("embedding", torch::nn::Embedding(30, 16));
    bias = register_module("bias", torch::nn::Embedding(13, 2));
    for (int i = 0; i < 3; ++i) blocks->push_back(Block(16));
    register_module("blocks", blocks);
  }

  Losses forward(const Batch& batch) {
    const auto& tokens_BT = batch["tokens"];
    const auto T = tokens_BT.size(1);
    const auto positions = torch::arange(T);
    const auto distance_TT = positions.unsqueeze(0) - positions.unsqueeze(1) + 6;
    const auto bias_HTT = bias(distance_TT).permute({2, 0, 1});
    auto x_BTC = embedding(tokens_BT);
    for (const auto& block : *blocks) x_BTC = block->as<BlockImpl>()->forward(x_BTC, bias_HTT);
    const auto logits = torch::matmul(x_BTC.slice(1, 0, T - 1), embedding->weight.t());
    const auto targets = tokens_BT.slice(1, 1);
    const auto loss_BT = torch::nn::functional::cross_entropy(
        logits.transpose(1, 2), targets,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    const auto mask_BT = (targets != 3).to(torch::kFloat);
    return {sum_loss((loss_BT * mask_BT).sum(), mask_BT.sum())};
  }

  torch::nn::Embedding embedding{nullptr}, bias{nullptr};
  torch::nn::ModuleList blocks;
};

/// Tags each token: an LSTM (one operator) and, above it, a cell unrolled over the positions.
struct Tagger : torch::nn::Module {
  Tagger() {
    embedding = register_module("embedding", torch::nn::Embedding(30, 10));
    lstm = register_module(
        "lstm",
        torch::nn::LSTM(torch::nn::LSTMOptions(10, 8).batch_first(true).bidirectional(true)));
    cell = register_module("cell", torch::nn::LSTMCell(16, 9));
    head = register_module("head", torch::nn::Linear(9, 4));
  }

  torch::Tensor forward(const Batch& batch) {
    const auto x_BTC = std::get<0>(lstm(embedding(batch["tokens"])));
    auto h = torch::zeros({x_BTC.size(0), 9}), c = torch::zeros({x_BTC.size(0), 9});
    std::vector<torch::Tensor> outputs;
    for (std::int64_t t = 0; t < x_BTC.size(1); ++t) {
      std::tie(h, c) = cell(x_BTC.select(1, t), std::make_tuple(h, c));
      outputs.push_back(h);
    }
    const auto logits_BKT = head(torch::stack(outputs, 1)).transpose(1, 2);
    return torch::nn::functional::cross_entropy(logits_BKT, batch["tags"]);
  }

  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::LSTMCell cell{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace trireme::models
