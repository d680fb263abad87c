#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>

#include "tests/engine/shard/gpt.h"
#include "tests/engine/shard/shard_trial.h"
#include "trireme/error.h"

namespace trireme::shard {
namespace {

using test::ShardTrial;
using test::Step;

constexpr BatchLayout kBatch{.global_batch = 8, .microbatch = 4, .lanes = 1};

ShardTrial trial_of(const std::string& model) {
  return {[model] { return models::make(model); }, kBatch};
}

/// Sums over shards, and values that shards take.
std::pair<std::size_t, std::size_t> crossings_of(const sharding::Sharding& sharding) {
  std::size_t num_sums = 0, num_taken = 0;
  for (const sharding::ShardedPart& part : sharding.parts) {
    num_sums += part.sums.size();
    num_taken += part.taken.size();
  }
  return {num_sums, num_taken};
}

// Three blocks with attention, dropouts and a position bias that all of them share, two heads: Megatron's pattern, two sums
// forward and two backward in each block. The bias is split with the heads, and so blocks that share it are split together. The words
// are the head too: a sum of what is looked up and one of the loss, and what the head takes.
TEST(ShardedModels, TransformerIsSplitByHeadsAndChannels) {
  const ShardTrial trial = trial_of("transformer");
  const sharding::Sharding sharding = trial.find(2);
  const auto [num_sums, num_taken] = crossings_of(sharding);
  EXPECT_EQ(num_sums, 6U + 2U);
  EXPECT_EQ(num_taken, 6U + 1U);
  std::vector<std::string> split;
  for (const graph::Parameter& parameter : trial.recording.graph.parameters) {
    if (sharding.splits.contains(parameter.value)) split.push_back(parameter.name);
  }
  EXPECT_THAT(
      split, testing::ElementsAre("embedding.weight", "bias.weight", "blocks.0.qkv.weight",
                                  "blocks.0.qkv.bias", "blocks.0.out.weight", "blocks.0.up.weight",
                                  "blocks.0.up.bias", "blocks.0.down.weight", "blocks.1.qkv.weight",
                                  "blocks.1.qkv.bias", "blocks.1.out.weight", "blocks.1.up.weight",
                                  "blocks.1.up.bias", "blocks.1.down.weight", "blocks.2.qkv.weight",
                                  "blocks.2.qkv.bias", "blocks.2.out.weight", "blocks.2.up.weight",
                                  "blocks.2.up.bias", "blocks.2.down.weight"));
}

// Two heads: four shards have feed-forward layers alone.
TEST(ShardedModels, HeadsThatDoNotDivideStayWhole) {
  const sharding::Sharding sharding = trial_of("transformer").find(4);
  EXPECT_EQ(sharding.parts.size(), 3U);
}

TEST(ShardedModels, OneShardIsTheModel) {
  const ShardTrial trial = trial_of("transformer");
  const Step plain = trial.run(trial.recording);
  const Step shards = trial.run_shards(trial.find(1));
  EXPECT_EQ(shards.loss, plain.loss);
  for (const auto& [name, gradient] : plain.gradients) {
    EXPECT_TRUE(reference::same_bits(shards.gradients.at(name), gradient)) << name;
  }
}

class ShardedModel : public testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(ShardedModel, IsNearTheModelInOneProcessAndHasItsBitsOverRanks) {
  const ShardTrial trial = trial_of(GetParam().first);
  const sharding::Sharding sharding = trial.find(GetParam().second);
  ASSERT_FALSE(sharding.parts.empty());
  const Step shards = trial.run_shards(sharding);
  test::expect_near(trial, sharding, shards, trial.run(trial.recording));
  test::expect_same_bits(trial, sharding, shards);
}

INSTANTIATE_TEST_SUITE_P(Models, ShardedModel,
                         testing::Values(std::pair("transformer", 2), std::pair("transformer", 4),
                                         std::pair("wide", 2), std::pair("wide", 4)),
                         [](const auto& info) {
                           return info.param.first + std::to_string(info.param.second);
                         });

// The weight of the norms of heads is whole, so what its shards give it is summed, like the gradients of the rows. The head is split with
// the loss.
TEST(ShardedModels, GptOfSingleOperators) {
  const ShardTrial trial{test::make_gpt, kBatch};
  const sharding::Sharding sharding = trial.find(4);
  const auto [num_sums, num_taken] = crossings_of(sharding);
  EXPECT_EQ(num_sums, 4U + 1U);
  EXPECT_EQ(num_taken, 4U + 2U + 1U);
  const Step shards = trial.run_shards(sharding);
  test::expect_near(trial, sharding, shards, trial.run(trial.recording));
  test::expect_same_bits(trial, sharding, shards);
}

// Stages may be cut between what shards do: their values cross like others.
TEST(ShardedModels, StagesHaveTheBitsOfOne) {
  const ShardTrial trial = trial_of("transformer");
  const sharding::Sharding sharding = trial.find(2);
  const Step one = trial.run_shards(sharding);
  for (const int num_stages : {2, 3, 5}) {
    const Step cut = trial.run_shards(sharding, num_stages);
    EXPECT_EQ(cut.loss, one.loss);
    for (const auto& [name, gradient] : one.gradients) {
      EXPECT_TRUE(reference::same_bits(cut.gradients.at(name), gradient)) << name;
    }
  }
}

TEST(ShardedModels, RanksHaveAsManyShardsEach) {
  const ShardTrial trial = trial_of("transformer");
  EXPECT_THROW(make_sharded_recording(trial.recording, trial.find(4), {0, 2}, {}), Error);
}

TEST(ShardedModels, PartsGoBackIntoTheModel) {
  const ShardTrial trial = trial_of("transformer");
  const sharding::Sharding sharding = trial.find(2);
  const ShardedRecording sharded = make_sharded_recording(trial.recording, sharding, {0, 2}, {});
  const auto found =
      std::ranges::find(sharded.parts, "bias.weight[0/2]", &sharding::ParameterPart::name);
  ASSERT_NE(found, sharded.parts.end());
  const sharding::ParameterPart& part = *found;
  const at::Tensor whole =
      trial.recording.tensors[trial.recording.graph.parameters[part.parameter].value].detach();
  const at::Tensor before = whole.clone();
  for (const sharding::ParameterPart& other : sharded.parts) {
    sharded.recording.tensors[other.value].detach().add_(other.shard + 1);
  }
  put_parts(sharded, trial.recording, sharding);
  EXPECT_TRUE(at::equal(whole.select(1, 0), before.select(1, 0) + 1));
  EXPECT_TRUE(at::equal(whole.select(1, 1), before.select(1, 1) + 2));
}

}  // namespace
}  // namespace trireme::shard
