// Vocabularies over shards: rows of a table, classes of a loss, tied and not.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/engine/shard/shard_trial.h"

namespace trireme::shard {
namespace {

namespace F = torch::nn::functional;
using test::ShardTrial;
using test::Step;

struct VocabularyCase {
  std::string name;
  bool is_tied = true;
  Precision precision = Precision::kF32;
  F::CrossEntropyFuncOptions::reduction_t reduction = torch::kMean;
  std::int64_t ignored = -100;
};

/// A table of 24 words, of which word 5 is padding, and a head over the words; ids are i32.
struct Words : torch::nn::Module {
  explicit Words(VocabularyCase given) : given(std::move(given)) {
    table = register_parameter("table", torch::randn({24, 8}) * 0.5);
    if (!this->given.is_tied) head = register_module("head", torch::nn::Linear(8, 24));
  }

  Losses forward(const Batch& batch) {
    const auto tokens_BT = batch["tokens"];
    const auto options = F::EmbeddingFuncOptions().padding_idx(5);
    const auto x_BTC = torch::tanh(F::embedding(tokens_BT, table, options));
    const auto logits_BTV = head ? head(x_BTC) : x_BTC.matmul(table.t());
    const auto loss = F::cross_entropy(
        logits_BTV.flatten(0, 1), tokens_BT.flatten().to(torch::kLong),
        F::CrossEntropyFuncOptions().reduction(given.reduction).ignore_index(given.ignored));
    return {mean_loss(loss.mean())};
  }

  VocabularyCase given;
  torch::Tensor table;
  torch::nn::Linear head{nullptr};
};

ShardTrial words_trial(const VocabularyCase& given) {
  const auto make = [given] {
    torch::manual_seed(3);
    auto words = std::make_shared<Words>(given);
    auto model = make_model(words, [words](const Batch& batch) { return words->forward(batch); });
    const auto make_batch = [](std::int64_t size, std::uint64_t seed) {
      torch::manual_seed(seed);
      Batch batch;
      batch.set("tokens", torch::randint(24, {size, 7}, torch::kInt));
      return batch;
    };
    return models::TestModel{with_precision(std::move(model), given.precision), make_batch};
  };
  return {make, {.global_batch = 8, .microbatch = 4, .lanes = 1}};
}

std::vector<std::string> split_parameters(const ShardTrial& trial,
                                          const sharding::Sharding& sharding) {
  std::vector<std::string> names;
  for (const graph::Parameter& parameter : trial.recording.graph.parameters) {
    const auto split = sharding.splits.find(parameter.value);
    if (split == sharding.splits.end()) continue;
    EXPECT_EQ(split->second, (sharding::TensorSplit{0, 1})) << parameter.name;
    names.push_back(parameter.name);
  }
  return names;
}

TEST(ShardedVocabularies, ATiedTableIsSplitByRows) {
  const ShardTrial trial = words_trial({});
  const sharding::Sharding sharding = trial.find(4);
  EXPECT_THAT(split_parameters(trial, sharding), testing::ElementsAre("table"));
  ASSERT_EQ(sharding.parts.size(), 1U);
  EXPECT_EQ(sharding.parts.front().sums.size(), 2U) << "the lookup and the loss";
  EXPECT_EQ(sharding.parts.front().taken.size(), 1U) << "what the head takes";
}

// Rows of a table alone save no products.
TEST(ShardedVocabularies, AHeadOfItsOwnIsSplitByOutputs) {
  const ShardTrial trial = words_trial({.is_tied = false});
  EXPECT_THAT(split_parameters(trial, trial.find(2)),
              testing::ElementsAre("head.weight", "head.bias"));
}

class ShardedVocabulary : public testing::TestWithParam<VocabularyCase> {};

TEST_P(ShardedVocabulary, IsNearTheModelInOneProcessAndHasItsBitsOverRanks) {
  const ShardTrial trial = words_trial(GetParam());
  const sharding::Sharding sharding = trial.find(4);
  ASSERT_FALSE(sharding.parts.empty());
  const Step shards = trial.run_shards(sharding);
  const Step plain = trial.run(trial.recording);
  if (GetParam().precision == Precision::kF32) {
    test::expect_near(trial, sharding, shards, plain);
  } else {
    EXPECT_NEAR(shards.loss, plain.loss, 1e-2 * plain.loss);
  }
  test::expect_same_bits(trial, sharding, shards);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ShardedVocabulary,
    testing::Values(VocabularyCase{"tied"}, VocabularyCase{.name = "untied", .is_tied = false},
                    VocabularyCase{.name = "bf16", .precision = Precision::kBf16},
                    VocabularyCase{.name = "sum", .reduction = torch::kSum, .ignored = 5},
                    VocabularyCase{.name = "mean", .ignored = 5},
                    VocabularyCase{.name = "none", .reduction = torch::kNone, .ignored = 5}),
    [](const auto& info) { return info.param.name; });

// They were rows of zeros, and a loss of nothing.
TEST(ShardedVocabularies, WordsThatTheTableDoesNotHaveAreErrors) {
  for (const bool is_tied : {true, false}) {
    ShardTrial trial = words_trial({.is_tied = is_tied});
    const sharding::Sharding sharding = trial.find(2);
    for (const int word : {24, -1}) {
      trial.microbatches.front().set("tokens", torch::full({4, 7}, word, torch::kInt));
      EXPECT_ANY_THROW(trial.run_shards(sharding)) << is_tied << " " << word;
    }
  }
}

}  // namespace
}  // namespace trireme::shard
