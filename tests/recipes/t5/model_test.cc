#include "recipes/t5/model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "trireme/error.h"

namespace trireme::recipes::t5 {
namespace {

Config tiny(Variant variant = Variant::kV10) {
  Config config = make_config("tiny", variant);
  config.vocabulary = 50;
  return config;
}

torch::Tensor random_tokens(std::int64_t rows, std::int64_t columns) {
  return torch::randint(1, 50, {rows, columns}, torch::kInt);
}

void expect_near(const torch::Tensor& a, const torch::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<float>(), 1e-5F);
}

TEST(Model, HasAsManyParametersAsTheArithmeticSays) {
  for (const Variant variant : {Variant::kV10, Variant::kV11}) {
    Config config = tiny(variant);
    config.decoder_layers = 3;
    std::int64_t count = 0;
    for (const auto& parameter : T5(config)->parameters()) count += parameter.numel();
    EXPECT_EQ(count, num_parameters(config));
  }
}

TEST(Model, WhatMakesNoModelIsRefused) {
  Config config = tiny();
  config.heads = 0;
  EXPECT_THROW(T5{config}, Error);
}

TEST(Model, LogitsSeeEarlierTargetsOnly) {
  torch::manual_seed(1);
  T5 model(tiny());
  const auto inputs = random_tokens(2, 9), targets = random_tokens(2, 6);
  auto other = targets.clone();
  other.slice(1, 3) = random_tokens(2, 3);
  const auto logits = model->forward(inputs, targets), changed = model->forward(inputs, other);
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 6, 50}));
  expect_near(logits.slice(1, 0, 4), changed.slice(1, 0, 4));
  EXPECT_GT((logits - changed).slice(1, 4).abs().max().item<float>(), 1e-3F);
}

TEST(Model, PaddedInputsAreAsIfTheyEndedEarlier) {
  torch::manual_seed(2);
  Config config = tiny();
  config.masks_padding = true;
  T5 model(config);
  const auto inputs = random_tokens(2, 5), targets = random_tokens(2, 4);
  const auto padded = torch::constant_pad_nd(inputs, {0, 3}, kPad);
  expect_near(model->forward(inputs, targets), model->forward(padded, targets));
}

TEST(Model, PaddedTargetsWeighNothing) {
  torch::manual_seed(3);
  T5 model(tiny());
  const auto inputs = random_tokens(2, 5), targets = random_tokens(2, 4);
  const TargetLoss full = model->loss(inputs, targets);
  const TargetLoss padded = model->loss(inputs, torch::constant_pad_nd(targets, {0, 2}, kPad));
  EXPECT_EQ(full.weight.item<float>(), 8);
  EXPECT_EQ(padded.weight.item<float>(), 8);
  EXPECT_NEAR(full.sum.item<float>(), padded.sum.item<float>(), 1e-4F);
}

TEST(Model, SequencesOfOneToken) {
  T5 model(tiny());
  EXPECT_TRUE(
      model->forward(random_tokens(1, 1), random_tokens(1, 1)).isfinite().all().item<bool>());
}

TEST(Model, DropoutWorksInTrainingOnly) {
  torch::manual_seed(4);
  Config config = tiny();
  config.dropout = 0.5;
  T5 model(config);
  const auto inputs = random_tokens(2, 5), targets = random_tokens(2, 4);
  const auto difference = [&] {
    return (model->forward(inputs, targets) - model->forward(inputs, targets)).abs().max();
  };
  EXPECT_GT(difference().item<float>(), 1e-3F);
  model->eval();
  EXPECT_EQ(difference().item<float>(), 0);
}

TEST(Model, FirstWeightsKeepVariance) {
  torch::manual_seed(5);
  const auto expected = [](const std::string& name, const Config& c) {
    const auto inverse_root = [](std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
    if (name == "embedding.weight") return 1.0;
    if (name.ends_with("feed_forward.output.weight")) return inverse_root(c.d_ff);
    if (name.ends_with("output.weight")) return inverse_root(c.heads * c.d_kv);
    if (name.ends_with("query.weight")) return inverse_root(c.d_model * c.d_kv);
    return inverse_root(c.d_model);
  };
  Config config = tiny(Variant::kV11);
  config.d_model = 256;
  T5 model(config);
  for (const auto& item : model->named_parameters()) {
    torch::Tensor weight = item.value();
    if (weight.dim() == 1) {
      EXPECT_TRUE((weight == 1).all().item<bool>()) << item.key();
      continue;
    }
    if (item.key().ends_with("query_key_value.weight")) {
      const auto parts = weight.chunk(3);
      EXPECT_NEAR(parts[0].std().item<double>() * std::sqrt(256.0 * 8.0), 1, 0.1) << item.key();
      weight = torch::cat({parts[1], parts[2]});
    }
    const double ratio = weight.std().item<double>() / expected(item.key(), config);
    EXPECT_NEAR(ratio, 1, item.key().find("table") == std::string::npos ? 0.1 : 0.3) << item.key();
  }
}

TEST(PositionBias, IsABandMatrixWithoutLaterKeys) {
  torch::manual_seed(6);
  PositionBias both(tiny(), Direction::kBoth), before(tiny(), Direction::kBefore);
  const auto all = both->forward(5), seen = before->forward(5);
  EXPECT_EQ(all.sizes(), (std::vector<std::int64_t>{4, 5, 5}));
  EXPECT_TRUE(all.is_contiguous());
  for (int t = 0; t < 5; ++t) {
    for (int s = 0; s < 5; ++s) {
      const auto bucket = position_buckets(torch::tensor(s - t), tiny(), Direction::kBoth);
      EXPECT_TRUE(torch::equal(all.select(1, t).select(1, s),
                               both->table->weight[bucket.item<std::int64_t>()]));
      EXPECT_EQ(std::isinf(seen[0][t][s].item<float>()), s > t);
    }
  }
}

}  // namespace
}  // namespace trireme::recipes::t5
