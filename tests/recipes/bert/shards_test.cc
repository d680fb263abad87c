// BERT in shards: what is split is found by itself, and has the model's results.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/bert/model.h"
#include "tests/engine/shard/shard_trial.h"
#include "tests/recipes/bert/random_batch.h"

namespace trireme::recipes::bert {
namespace {

using shard::test::ShardTrial;
using shard::test::Step;

struct ShardCase {
  bool is_unpadded = false;
  double dropout = 0;
  Precision precision = Precision::kF32;
};

ShardTrial shard_trial(const ShardCase& given) {
  const auto make = [given] {
    torch::manual_seed(5);
    BertConfig config = small_config(given.is_unpadded);
    config.channels = 32;
    config.heads = 4;
    config.dropout = given.dropout;
    Bert net(config);
    auto model = make_model(net.ptr(), [net](const Batch& batch) mutable {
      const auto losses = net->losses(
          {batch["tokens"], batch["types"], batch["length"]},
          {batch["positions"], batch["hidden"], batch["predictions"], batch["is_random"]});
      return Losses{sum_loss(losses.masked_sum, losses.num_masked, "masked"),
                    mean_loss(losses.next_mean, "next")};
    });
    const auto make_batch = [](std::int64_t size, std::uint64_t seed) {
      torch::manual_seed(seed);
      const RandomBatch all(size, 12, 3);
      Batch batch;
      batch.set("tokens", all.sequences.tokens_BS);
      batch.set("types", all.sequences.types_BS);
      batch.set("length", all.sequences.lengths_B);
      batch.set("positions", all.questions.positions_BP);
      batch.set("hidden", all.questions.hidden_BP);
      batch.set("predictions", all.questions.counts_B);
      batch.set("is_random", all.questions.is_random_B);
      return batch;
    };
    return models::TestModel{with_precision(std::move(model), given.precision), make_batch};
  };
  return {make, {.global_batch = 8, .microbatch = 4, .lanes = 1}};
}

std::vector<std::string> names_of_sums(const ShardTrial& trial,
                                       const sharding::Sharding& sharding) {
  std::vector<std::string> names;
  for (const sharding::ShardedPart& part : sharding.parts) {
    for (const graph::NodeId id : part.sums) {
      const auto& nodes = trial.recording.graph.nodes;
      names.push_back(std::ranges::find(nodes, id, &graph::Node::id)->name);
    }
  }
  std::ranges::sort(names);
  return names;
}

// Four heads in one operator, and what a pooler and its head make of the first token.
TEST(BertShards, AreMegatronsPattern) {
  for (const bool is_unpadded : {false, true}) {
    const ShardTrial trial = shard_trial({.is_unpadded = is_unpadded});
    EXPECT_THAT(names_of_sums(trial, trial.find(4)),
                testing::ElementsAre("blocks.0.attention_output/addmm", "blocks.0.output/addmm",
                                     "blocks.1.attention_output/addmm", "blocks.1.output/addmm",
                                     "next/addmm"));
  }
}

TEST(BertShards, AttentionWithDropoutInsideStaysWhole) {
  const ShardTrial trial = shard_trial({.dropout = 0.1});
  EXPECT_THAT(names_of_sums(trial, trial.find(2)),
              testing::ElementsAre("blocks.0.output/addmm", "blocks.1.output/addmm", "next/addmm"));
}

class BertShardsOf : public testing::TestWithParam<ShardCase> {};

TEST_P(BertShardsOf, AreNearTheModelInOneProcessAndHaveItsBitsOverRanks) {
  const ShardTrial trial = shard_trial(GetParam());
  const sharding::Sharding sharding = trial.find(4);
  const Step shards = trial.run_shards(sharding);
  const Step plain = trial.run(trial.recording);
  if (GetParam().precision == Precision::kF32) {
    shard::test::expect_near(trial, sharding, shards, plain);
  } else {
    EXPECT_NEAR(shards.loss, plain.loss, 1e-2 * plain.loss);
  }
  shard::test::expect_same_bits(trial, sharding, shards);
}

INSTANTIATE_TEST_SUITE_P(Cases, BertShardsOf,
                         testing::Values(ShardCase{}, ShardCase{.is_unpadded = true},
                                         ShardCase{.dropout = 0.1},
                                         ShardCase{.precision = Precision::kBf16}));

}  // namespace
}  // namespace trireme::recipes::bert
