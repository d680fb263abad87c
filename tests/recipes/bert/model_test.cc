#include "recipes/bert/model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/recipes/bert/random_batch.h"
#include "trireme/error.h"

namespace trireme::recipes::bert {
namespace {

void expect_near(const torch::Tensor& a, const torch::Tensor& b, float tolerance = 1e-5F) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT((a - b).abs().max().item<float>(), tolerance);
}

/// A model with weights of its own, larger than the initial ones so that all parts matter.
Bert strong_model(const BertConfig& config, std::uint64_t seed) {
  torch::manual_seed(seed);
  Bert model(config);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) {
    if (parameter.dim() > 1) parameter.mul_(10);
  }
  return model;
}

TEST(Model, HasAsManyParametersAsTheArithmeticSays) {
  for (BertConfig config : {small_config(false), make_config("tiny")}) {
    config.blocks = 3;
    std::int64_t count = 0;
    for (const auto& parameter : Bert(config)->parameters()) count += parameter.numel();
    EXPECT_EQ(count, num_parameters(config));
  }
}

TEST(Model, WhatMakesNoModelIsRefused) {
  BertConfig config = small_config(false);
  config.heads = 0;
  EXPECT_THROW(Bert{config}, Error);
}

// Sums in another order: losses and gradients differ by rounding.
TEST(Model, OnTokensAloneTheLossesAreThoseWithPadding) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Bert padded = strong_model(small_config(false), seed);
    Bert unpadded = strong_model(small_config(true), seed);
    const RandomBatch batch(6, 13, 4);
    const auto a = padded->losses(batch.sequences, batch.questions);
    const auto b = unpadded->losses(batch.sequences, batch.questions);
    EXPECT_NEAR(a.masked_sum.item<float>(), b.masked_sum.item<float>(),
                1e-5F * a.masked_sum.item<float>());
    EXPECT_NEAR(a.next_mean.item<float>(), b.next_mean.item<float>(), 1e-5F);
    EXPECT_EQ(a.num_masked.item<float>(), b.num_masked.item<float>());
    EXPECT_EQ(a.masked_correct.item<float>(), b.masked_correct.item<float>());
    EXPECT_EQ(a.next_correct.item<float>(), b.next_correct.item<float>());
    (a.masked_sum / a.num_masked + a.next_mean).backward();
    (b.masked_sum / b.num_masked + b.next_mean).backward();
    for (const auto& item : padded->named_parameters()) {
      expect_near(item.value().grad(), unpadded->named_parameters()[item.key()].grad());
    }
  }
}

TEST(Model, WhatStandsInPaddingDoesNotMatter) {
  for (const bool is_unpadded : {false, true}) {
    Bert model = strong_model(small_config(is_unpadded), 2);
    RandomBatch batch(4, 11, 3);
    const auto before = model->losses(batch.sequences, batch.questions);
    const auto is_padding = torch::arange(11) >= batch.sequences.lengths_B.unsqueeze(1);
    const auto is_beyond = torch::arange(3) >= batch.questions.counts_B.unsqueeze(1);
    EXPECT_GT(is_padding.sum().item<int>(), 0);
    EXPECT_GT(is_beyond.sum().item<int>(), 0);
    batch.sequences.tokens_BS.masked_fill_(is_padding, 7);
    batch.sequences.types_BS.masked_fill_(is_padding, 1);
    batch.questions.positions_BP.masked_fill_(is_beyond, 1);
    batch.questions.hidden_BP.masked_fill_(is_beyond, 9);
    const auto after = model->losses(batch.sequences, batch.questions);
    expect_near(before.masked_sum, after.masked_sum, 1e-4F);
    expect_near(before.next_mean, after.next_mean);
  }
}

TEST(Model, EveryTokenSeesAllOthers) {
  Bert model = strong_model(small_config(true), 3);
  RandomBatch batch(1, 9, 1);
  batch.sequences.lengths_B.fill_(9);
  const auto before = model->encode(batch.sequences);
  batch.sequences.tokens_BS[0][8] = (batch.sequences.tokens_BS[0][8] + 1) % kVocabulary;
  const auto change = (model->encode(batch.sequences) - before).abs().amax({0, 2});
  EXPECT_GT(change.min().item<float>(), 1e-4F);
}

TEST(Model, DropoutWorksInTrainingOnly) {
  for (const bool is_unpadded : {false, true}) {
    BertConfig config = small_config(is_unpadded);
    config.dropout = 0.5;
    Bert model = strong_model(config, 4);
    const RandomBatch batch(2, 7, 2);
    const auto difference = [&] {
      return (model->encode(batch.sequences) - model->encode(batch.sequences)).abs().max();
    };
    EXPECT_GT(difference().item<float>(), 1e-3F);
    model->eval();
    EXPECT_EQ(difference().item<float>(), 0);
  }
}

TEST(Model, FirstWeightsAreThoseOfTheSource) {
  torch::manual_seed(5);
  Bert model(make_config("tiny"));
  for (const auto& item : model->named_parameters()) {
    const bool is_norm = item.key().ends_with("norm.weight");
    if (item.value().dim() > 1) {
      EXPECT_NEAR(item.value().std().item<double>() / 0.02, 1, 0.1) << item.key();
    } else {
      EXPECT_TRUE((item.value() == (is_norm ? 1 : 0)).all().item<bool>()) << item.key();
    }
  }
}

}  // namespace
}  // namespace trireme::recipes::bert
