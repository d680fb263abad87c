#include "trireme/engine/train/verify_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

ComparedShards all_that_can_be_split(int num_shards, const OptimizerOptions& optimizer) {
  return {.steps = {.num_steps = 3, .seed = 3, .optimizer = optimizer},
          .batch = {.global_batch = 12, .microbatch = 3, .lanes = 2},
          .sharding = {.num_shards = num_shards, .flops_per_second = 1, .link_seconds = 0}};
}

void expect_all_pass(const ShardVerification& result, int rank) {
  EXPECT_EQ(result.comparisons.size(), rank == 0 ? 2U : 1U);
  EXPECT_GT(result.shard_step_ms, 0);
  EXPECT_EQ(result.model_step_ms > 0, rank == 0);
  for (const Comparison& one : result.comparisons) {
    EXPECT_TRUE(one.passes()) << one.against << ": " << one.first_difference << ", loss "
                              << one.worst_loss << ", gradient " << one.worst_gradient
                              << ", weight " << one.worst_weight;
  }
}

// Attention with dropouts in two shards, feed-forward layers alone in four, of which each rank has two.
TEST(VerifyShards, RanksTrainLikeOneProcessAndLikeTheModel) {
  for (const int num_shards : {2, 4}) {
    for (const std::string optimizer : {"sgd", "adamw"}) {
      run_ranks(2, [&](const collectives::World& world) {
        const ComparedShards options = all_that_can_be_split(num_shards, {.name = optimizer});
        expect_all_pass(verify_shards(world, workload_of("transformer"), options), world.rank());
      });
    }
  }
}

// Batch norms over both shards, and levels of a U-Net over four of which each rank has two.
TEST(VerifyShards, RanksTrainTilesLikeOneProcessAndLikeTheModel) {
  for (const auto& [model, num_shards] : {std::pair("resnet", 2), std::pair("unet", 4)}) {
    run_ranks(2, [&](const collectives::World& world) {
      ComparedShards options = all_that_can_be_split(num_shards, {.name = "sgd"});
      options.kind = sharding::SplitKind::kTiles;
      expect_all_pass(verify_shards(world, workload_of(model), options), world.rank());
    });
  }
}

TEST(VerifyShards, RefusesWhatShardsCannotDo) {
  const auto refusal = [](const std::string& model, const ComparedShards& options, int num_ranks) {
    std::string message;
    try {
      run_ranks(num_ranks, [&](const collectives::World& world) {
        verify_shards(world, workload_of(model), options);
      });
    } catch (const Error& error) {
      message = error.message();
    }
    return message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("transformer", all_that_can_be_split(2, {.name = "lamb"}), 1),
              HasSubstr("sgd or adamw"));
  EXPECT_THAT(refusal("transformer", all_that_can_be_split(2, {.clip_norm = 1}), 1),
              HasSubstr("clip_norm"));
  EXPECT_THAT(refusal("unet", all_that_can_be_split(2, {}), 1), HasSubstr("nothing of the model"));
  EXPECT_THAT(refusal("transformer", all_that_can_be_split(2, {}), 4), HasSubstr("shards each"));
  ComparedShards tiles = all_that_can_be_split(2, {});
  tiles.kind = sharding::SplitKind::kTiles;
  EXPECT_THAT(refusal("transformer", tiles, 1), HasSubstr("no rows"));
}

}  // namespace
}  // namespace trireme::train
