#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/partition/chain.h"

namespace trireme::benchmarks {

// Chains of operators as well-known models have them, written down from their papers: shapes and
// parameters are theirs, one sample per microbatch. Times are not measured but computed from the
// shapes, as for one core: what is slower of arithmetic and memory, plus the call,
//
//     max(2 multiply-adds / 60 GFLOP/s, bytes read and written / 10 GB/s) + 3 us;
//
// I costs what F does, and so does W where there are parameters. A branch lies in the chain in
// execution order and joins it by `skip_from`.

/// Writes a chain, operator by operator.
class ChainWriter {
 public:
  explicit ChainWriter(std::string name) { chain_.name = std::move(name); }

  /// Of the operators from here on; with a number, one of several alike.
  void begin_module(const std::string& name) { module_ = name; }
  void begin_module(const std::string& name, int number) {
    module_ = name + "." + std::to_string(number);
  }

  /// Position of the last operator.
  int last() const { return chain_.size() - 1; }
  Chain chain() && { return std::move(chain_); }

  /// An operator on the output of the one before.
  int add(std::int64_t width, std::int64_t elements, double multiply_adds, int skip_from = -1) {
    const std::int64_t read = width_ + elements + (skip_from >= 0 ? width : 0);
    const double bytes = 4.0 * static_cast<double>(read + width);
    ChainNode node;
    node.forward_us = std::max(2 * multiply_adds / 60e3, bytes / 10e3) + 3;
    node.input_us = node.forward_us;
    node.weight_us = elements > 0 ? node.forward_us : 0;
    node.width = width_ = width;
    node.elements = elements;
    node.skip_from = skip_from;
    node.module = module_;
    chain_.nodes.push_back(node);
    return last();
  }

  /// Activation, dropout, softmax, a sum with an earlier output.
  int map(int skip_from = -1) { return add(width_, 0, static_cast<double>(width_), skip_from); }
  int norm(std::int64_t channels) {
    return add(width_, 2 * channels, 4.0 * static_cast<double>(width_));
  }
  int linear(std::int64_t rows, std::int64_t in, std::int64_t out) {
    return add(rows * out, in * out + out, static_cast<double>(rows * in * out));
  }
  /// Square kernel and image; `side` of the output.
  int conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side,
           std::int64_t groups = 1) {
    const std::int64_t weights = in / groups * out * kernel * kernel;
    return add(side * side * out, weights, static_cast<double>(side * side * weights));
  }
  int embedding(std::int64_t rows, std::int64_t entries, std::int64_t width) {
    const int at = add(rows * width, entries * width, 0);
    ChainNode& node = chain_.nodes.back();
    node.forward_us = 4e-4 * static_cast<double>(rows * width) + 3;  // it reads the rows only
    node.input_us = 0;
    node.weight_us = 4e-4 * static_cast<double>(entries * width) + 3;  // and fills a whole gradient
    return at;
  }
  /// Pre-norm block of width C over T positions: 15 operators.
  void attention_block(std::int64_t T, std::int64_t C, std::int64_t heads) {
    int residual = last();
    norm(C);
    linear(T, C, 3 * C);
    add(heads * T * T, 0, static_cast<double>(T * T * C));
    map();
    map();
    add(T * C, 0, static_cast<double>(T * T * C));
    linear(T, C, C);
    map();
    residual = map(residual);
    norm(C);
    linear(T, C, 4 * C);
    map();
    linear(T, 4 * C, C);
    map();
    map(residual);
  }

 private:
  Chain chain_;
  std::string module_;
  std::int64_t width_ = 0;
};

inline Chain vgg16() {
  ChainWriter w("VGG-16");
  std::int64_t in = 3, side = 224;
  for (const auto& [out, count] : {std::pair{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    for (int i = 0; i < count; ++i) {
      w.conv(in, out, 3, side);
      w.map();
      in = out;
    }
    side /= 2;
    w.add(side * side * out, 0, static_cast<double>(4 * side * side * out));
  }
  for (const auto& [from, to] : {std::pair{25088, 4096}, {4096, 4096}, {4096, 1000}}) {
    w.linear(1, from, to);
    w.map();
  }
  return std::move(w).chain();
}

/// Bottlenecks after the projection of the skip.
inline Chain resnet(const std::string& name, const std::vector<int>& counts) {
  ChainWriter w(name);
  w.conv(3, 64, 7, 112);
  w.norm(64);
  w.map();
  std::int64_t in = 64, side = 56, inner = 64;
  w.add(side * side * in, 0, static_cast<double>(9 * side * side * in));
  for (const int count : counts) {
    for (int i = 0; i < count; ++i) {
      const int skip = w.last();
      w.begin_module("layer" + std::to_string(inner / 64), i);
      for (const auto& [from, to, kernel] : {std::tuple{in, inner, 1}, {inner, inner, 3}}) {
        w.conv(from, to, kernel, side);
        w.norm(to);
        w.map();
      }
      w.conv(inner, 4 * inner, 1, side);
      w.norm(4 * inner);
      w.map(i == 0 ? -1 : skip);
      w.map();
      in = 4 * inner;
    }
    inner *= 2;
    side /= 2;
  }
  w.begin_module("head");
  w.add(in, 0, static_cast<double>(49 * in));
  w.linear(1, in, 1000);
  return std::move(w).chain();
}

inline Chain mobilenet() {
  ChainWriter w("MobileNet");
  w.conv(3, 32, 3, 112);
  w.norm(32);
  w.map();
  std::int64_t in = 32, side = 112;
  int block = 0;
  for (const int out : {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024}) {
    if (out != in && out != 64) side /= 2;
    w.begin_module("blocks", block++);
    w.conv(in, in, 3, side, in);
    w.norm(in);
    w.map();
    w.conv(in, out, 1, side);
    w.norm(out);
    w.map();
    in = out;
  }
  w.add(in, 0, static_cast<double>(49 * in));
  w.linear(1, in, 1000);
  return std::move(w).chain();
}

inline Chain unet() {
  ChainWriter w("U-Net");
  std::vector<int> skips;
  std::int64_t in = 1, side = 256;
  const auto twice = [&](std::int64_t from, std::int64_t to) {
    for (const std::int64_t channels : {from, to}) {
      w.conv(channels, to, 3, side);
      w.norm(to);
      w.map();
    }
  };
  for (const int out : {64, 128, 256, 512, 1024}) {
    twice(in, out);
    in = out;
    if (out == 1024) break;
    skips.push_back(w.last());
    side /= 2;
    w.add(side * side * out, 0, static_cast<double>(4 * side * side * out));
  }
  for (const int out : {512, 256, 128, 64}) {
    side *= 2;
    w.conv(in, out, 2, side);
    w.add(side * side * 2 * out, 0, 0, skips.back());
    skips.pop_back();
    twice(2 * static_cast<std::int64_t>(out), out);
    in = out;
  }
  w.conv(64, 2, 1, side);
  return std::move(w).chain();
}

struct TransformerSize {
  std::int64_t positions, width, heads;
  int layers;
  std::int64_t vocabulary;
};

inline Chain transformer(const std::string& name, const TransformerSize& size) {
  ChainWriter w(name);
  if (size.vocabulary > 0) w.embedding(size.positions, size.vocabulary, size.width);
  w.norm(size.width);
  for (int i = 0; i < size.layers; ++i) {
    w.begin_module("blocks", i);
    w.attention_block(size.positions, size.width, size.heads);
  }
  w.begin_module("head");
  w.norm(size.width);
  if (size.vocabulary > 0) w.linear(size.positions, size.width, size.vocabulary);
  return std::move(w).chain();
}

/// Eight LSTM layers of 1024 between an embedding and a softmax over 32,000 words, 50 positions.
inline Chain lstm_translator() {
  ChainWriter w("LSTM translator");
  constexpr std::int64_t kRows = 50, kWidth = 1024;
  w.embedding(kRows, 32000, kWidth);
  for (int layer = 0; layer < 8; ++layer) {
    w.begin_module("layers", layer);
    w.add(kRows * kWidth, 8 * kWidth * kWidth, static_cast<double>(kRows * 8 * kWidth * kWidth));
    w.map();
  }
  w.begin_module("head");
  w.linear(kRows, kWidth, 32000);
  w.map();
  return std::move(w).chain();
}

/// Times from a log-normal distribution (sigma 1.5), parameters from another one, independent.
inline Chain heavy_tailed(int num_nodes, std::uint64_t seed) {
  Chain chain{"log-normal " + std::to_string(num_nodes), {}};
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> times(4, 1.5), elements(8, 2);
  for (int n = 0; n < num_nodes; ++n) {
    const double forward = times(random);
    const auto width = static_cast<std::int64_t>(elements(random)) + 1;
    chain.nodes.push_back({forward, forward, forward, width, width});
  }
  return chain;
}

inline std::vector<Chain> realistic_chains() {
  return {vgg16(),
          resnet("ResNet-50", {3, 4, 6, 3}),
          resnet("ResNet-152", {3, 8, 36, 3}),
          mobilenet(),
          unet(),
          transformer("BERT-base", {128, 768, 12, 12, 30522}),
          transformer("GPT-2 medium", {512, 1024, 16, 24, 50257}),
          transformer("ViT-L/16", {197, 1024, 16, 24, 0}),
          lstm_translator(),
          heavy_tailed(60, 1),
          heavy_tailed(200, 2)};
}

}  // namespace trireme::benchmarks
