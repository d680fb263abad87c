// T5 in shards: what is split is found by itself, and has the model's results.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/t5/model.h"
#include "tests/engine/shard/shard_trial.h"

namespace trireme::recipes::t5 {
namespace {

using shard::test::ShardTrial;
using shard::test::Step;

Config config_of_shards(Variant variant) {
  Config config = make_config("tiny", variant);
  config.vocabulary = 48;
  config.d_model = 16;
  config.d_ff = 32;
  config.d_kv = 4;
  config.heads = 4;
  config.encoder_layers = config.decoder_layers = 2;
  config.dropout = 0.1;
  return config;
}

ShardTrial shard_trial(Variant variant) {
  const auto make = [variant] {
    torch::manual_seed(5);
    T5 net(config_of_shards(variant));
    auto model = make_model(net.ptr(), [net](const Batch& batch) mutable {
      const TargetLoss loss = net->loss(batch["inputs"], batch["targets"]);
      return sum_loss(loss.sum, loss.weight);
    });
    const auto make_batch = [](std::int64_t size, std::uint64_t seed) {
      torch::manual_seed(seed);
      Batch batch;
      batch.set("inputs", torch::randint(1, 48, {size, 9}, torch::kInt));
      batch.set("targets", torch::randint(1, 48, {size, 6}, torch::kInt));
      return batch;
    };
    return models::TestModel{std::move(model), make_batch};
  };
  return {make, {.global_batch = 8, .microbatch = 4, .lanes = 1}};
}

class T5Shards : public testing::TestWithParam<Variant> {};

// Two sums forward in a layer of the encoder, three in one of the decoder. Backward one for each input of attention and
// feed-forward layer, but one alone for what the encoder gives to all layers of the decoder. The head is split with its loss; with
// them the table if it is the head's, of which both sides look up rows.
TEST_P(T5Shards, AreMegatronsPattern) {
  const ShardTrial trial = shard_trial(GetParam());
  for (const int num_shards : {2, 4}) {
    const sharding::Sharding sharding = trial.find(num_shards);
    std::size_t num_sums = 0, num_taken = 0;
    for (const sharding::ShardedPart& part : sharding.parts) {
      num_sums += part.sums.size();
      num_taken += part.taken.size();
    }
    const bool is_tied = GetParam() == Variant::kV10;
    EXPECT_EQ(num_sums, 2U * 2 + 2 * 3 + (is_tied ? 3 : 1));
    EXPECT_EQ(num_taken, 2U * 2 + 2 * 3 + 1 + 1);
    std::vector<std::string> whole;
    for (const graph::Parameter& parameter : trial.recording.graph.parameters) {
      const bool is_norm = parameter.name.find("norm") != std::string::npos;
      if (!is_norm && !sharding.splits.contains(parameter.value)) whole.push_back(parameter.name);
    }
    EXPECT_EQ(whole,
              is_tied ? std::vector<std::string>() : std::vector<std::string>{"embedding.weight"});
  }
}

TEST_P(T5Shards, AreNearTheModelInOneProcessAndHaveItsBitsOverRanks) {
  const ShardTrial trial = shard_trial(GetParam());
  const sharding::Sharding sharding = trial.find(4);
  const Step shards = trial.run_shards(sharding);
  shard::test::expect_near(trial, sharding, shards, trial.run(trial.recording));
  shard::test::expect_same_bits(trial, sharding, shards);
}

INSTANTIATE_TEST_SUITE_P(Variants, T5Shards, testing::Values(Variant::kV10, Variant::kV11),
                         [](const auto& info) {
                           return info.param == Variant::kV10 ? "V10" : "V11";
                         });

}  // namespace
}  // namespace trireme::recipes::t5
