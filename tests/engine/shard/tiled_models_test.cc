// Convolution networks whose images and volumes are split by rows over shards.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>

#include "tests/engine/shard/shard_trial.h"
#include "tests/engine/shard/volumes.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::shard {
namespace {

using test::ShardTrial;
using test::Step;

constexpr BatchLayout kImages{.global_batch = 6, .microbatch = 3, .lanes = 1};

ShardTrial tiled_trial(const std::string& model) {
  if (model == "volumes") return {test::make_volumes, kImages};
  if (model == "own_norms") return {[] { return test::make_own_norms(Precision::kF32); }, kImages};
  return {[model] { return models::make(model); }, kImages};
}

sharding::Sharding tiles_of(const ShardTrial& trial, int num_shards) {
  return sharding::find_tiles(trial.recording.graph, {.num_shards = num_shards,
                                                      .microbatch = trial.batch.microbatch,
                                                      .flops_per_second = 1,
                                                      .link_seconds = 0});
}

/// Operators of whole convolutions and those on tiles.
std::size_t num_tiled(const ShardTrial& trial, const sharding::Sharding& sharding) {
  std::size_t num = 0;
  for (const graph::Node& node : trial.recording.graph.nodes) {
    const bool is_convolution = node.op.starts_with("aten::conv");
    num += is_convolution && sharding.splits.contains(node.outputs.front()) ? 1 : 0;
  }
  return num;
}

// 20 convolutions on 16 to 2 rows: of four shards the last stage, two rows, stays whole.
TEST(TiledModels, AResNetIsSplitWhereThereAreRows) {
  const ShardTrial trial = tiled_trial("resnet");
  const sharding::Sharding two = tiles_of(trial, 2), four = tiles_of(trial, 4);
  EXPECT_EQ(num_tiled(trial, two), 20U);
  EXPECT_EQ(num_tiled(trial, four), 15U);
  ASSERT_EQ(two.parts.size(), 1U);
  EXPECT_FALSE(two.parts.front().halos.empty());
}

// Down to four rows and up again, with the loss of its pixels: no tiles are put together.
TEST(TiledModels, AUNetIsSplitToItsLoss) {
  const ShardTrial trial = tiled_trial("unet");
  const sharding::Sharding sharding = tiles_of(trial, 4);
  EXPECT_EQ(num_tiled(trial, sharding), 6U);
  ASSERT_EQ(sharding.parts.size(), 1U);
  ASSERT_EQ(sharding.parts.front().sums.size(), 1U);
  const auto loss = std::ranges::find(trial.recording.graph.nodes,
                                      sharding.parts.front().sums.front(), &graph::Node::id);
  EXPECT_EQ(loss->op, "aten::cross_entropy_loss");
}

struct TilesCase {
  std::string model;
  int num_shards = 2;
};

class TiledModel : public testing::TestWithParam<TilesCase> {};

TEST_P(TiledModel, IsNearTheModelInOneProcessAndHasItsBitsOverRanks) {
  const ShardTrial trial = tiled_trial(GetParam().model);
  const sharding::Sharding sharding = tiles_of(trial, GetParam().num_shards);
  ASSERT_FALSE(sharding.parts.empty());
  const Step shards = trial.run_shards(sharding);
  test::expect_near(trial, sharding, shards, trial.run(trial.recording), 1e-6);
  test::expect_same_bits(trial, sharding, shards);
}

// Three shards have uneven tiles; of four shards ranks have one or two each.
INSTANTIATE_TEST_SUITE_P(Models, TiledModel,
                         testing::Values(TilesCase{"resnet", 2}, TilesCase{"resnet", 3},
                                         TilesCase{"resnet", 4}, TilesCase{"unet", 2},
                                         TilesCase{"unet", 3}, TilesCase{"unet", 4},
                                         TilesCase{"volumes", 2}, TilesCase{"volumes", 3},
                                         TilesCase{"volumes", 4}, TilesCase{"own_norms", 3}),
                         [](const auto& info) {
                           return info.param.model + std::to_string(info.param.num_shards);
                         });

TEST(TiledModels, OfBf16AreNearTheModelToo) {
  const ShardTrial trial{[] { return test::make_own_norms(Precision::kBf16); }, kImages};
  const sharding::Sharding sharding = tiles_of(trial, 4);
  const Step shards = trial.run_shards(sharding);
  EXPECT_NEAR(shards.loss, trial.run(trial.recording).loss, 2e-2);
  test::expect_same_bits(trial, sharding, shards);
}

/// By name, after a step.
std::map<std::string, at::Tensor> buffers_after(const ShardTrial& trial,
                                                const record::Recording& recording) {
  static_cast<void>(trial.run(recording));
  std::map<std::string, at::Tensor> buffers;
  for (const graph::Buffer& buffer : recording.graph.buffers) {
    buffers[buffer.name] = recording.tensors[buffer.value].clone();
  }
  return buffers;
}

TEST(TiledModels, RunningStatisticsAreThoseOfAllRows) {
  const ShardTrial plain = tiled_trial("resnet"), tiled = tiled_trial("resnet");
  const auto expected = buffers_after(plain, plain.recording);
  const ShardedRecording sharded =
      make_sharded_recording(tiled.recording, tiles_of(tiled, 2), {0, 2}, {});
  const auto buffers = buffers_after(tiled, sharded.recording);
  EXPECT_GT(expected.size(), 20U);
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(at::allclose(buffers.at(name), tensor, 1e-5, 1e-6)) << name;
  }
}

TEST(TiledModels, StagesHaveTheBitsOfOne) {
  const ShardTrial trial = tiled_trial("unet");
  const sharding::Sharding sharding = tiles_of(trial, 3);
  const Step one = trial.run_shards(sharding);
  for (const int num_stages : {2, 3}) {
    const Step cut = trial.run_shards(sharding, num_stages);
    EXPECT_EQ(cut.loss, one.loss);
    for (const auto& [name, gradient] : one.gradients) {
      EXPECT_TRUE(reference::same_bits(cut.gradients.at(name), gradient)) << name;
    }
  }
}

}  // namespace
}  // namespace trireme::shard
