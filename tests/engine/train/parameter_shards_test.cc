#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "tests/engine/train/layouts.h"
#include "tests/engine/train/rank_threads.h"

namespace trireme::train {
namespace {

class ParameterShards : public testing::TestWithParam<Layout> {};

TEST_P(ParameterShards, HaveTheBitsOfTheSerialExecutor) {
  expect_bits_of_serial_executor(GetParam());
}

/// Every model with parameters in shards, of stages that are whole in turn: one rank of a replica has all, or two have
/// half of them each.
std::vector<Layout> parameter_sharding_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    const bool is_2x2 = m % 2 == 0;
    result.push_back({.model = models::names()[m],
                      .stages = 4,
                      .replicas = is_2x2 || m % 4 == 1 ? 2 : 4,
                      .schedule = is_2x2 ? kVirtualSchedules[m / 2 % 5] : kSchedules[m / 2 % 3],
                      .stages_per_rank = is_2x2 ? 2 : 4,
                      .shards_parameters = true});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Models, ParameterShards, testing::ValuesIn(parameter_sharding_layouts()));

TEST(ParameterShardsSession, EveryOptimizerHasTheBitsOfOneProcess) {
  expect_bits_of_one({.model = "wide",
                      .stages = 3,
                      .replicas = 2,
                      .stages_per_rank = 3,
                      .shards_parameters = true},
                     {"adamw", "sgd", "lamb", "lars", "novograd"});
}

// Between steps the model's tensors cannot be read, and say why; whoever asks for whole values gets them for a while.
TEST(ParameterShardsSession, ReplicasKeepNoValuesOfOthers) {
  const Layout layout{
      .model = "wide", .stages = 3, .replicas = 2, .stages_per_rank = 3, .shards_parameters = true};
  const layout::Plan plan = plan_of(layout);
  run_ranks(2, [&](const collectives::World& world) {
    const Workload workload = construct(workload_of(layout.model), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    const std::size_t bytes = workload.model.parameters[0].tensor.nbytes();
    RankSession session(world, workload, recorded, plan, {.drift_check_steps = {1}});
    session.step();
    session.step();
    session.check_replicas();
    session.check_finite();
    const at::Tensor& weight = workload.model.parameters[0].tensor;
    EXPECT_EQ(weight.nbytes(), bytes);
    try {
      weight.sum();
      ADD_FAILURE() << "a parameter was read that is in shards";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("are in shards on the replicas"));
    }
    std::int64_t kept = 0, all = 0;
    for (int b = 0; b < std::ssize(session.store().map().buckets); ++b) {
      ASSERT_NE(session.store().sharded(b), nullptr);
      kept += session.store().sharded(b)->shard().numel();
      all += session.store().map().buckets[b].num_elements;
      EXPECT_FALSE(session.sums().gradients().flat(b).defined());
    }
    EXPECT_LT(kept, all * 2 / 3);
    {
      const RankSession::WholeValues whole(session);
      EXPECT_TRUE(weight.sum().isfinite().item<bool>());
    }
    EXPECT_THROW(weight.sum(), c10::Error);
  });
}

}  // namespace
}  // namespace trireme::train
