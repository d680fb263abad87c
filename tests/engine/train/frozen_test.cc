#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/gathered_state.h"
#include "trireme/engine/train/rank_checkpoint.h"

namespace trireme::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using trireme::test::error_of;

/// Layers of which every other one is frozen, and a frozen vector that all of them use.
struct HalfFrozen : torch::nn::Module {
  std::vector<torch::nn::Linear> layers;
  torch::Tensor all;
  HalfFrozen() {
    for (int i = 0; i < 6; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(4, 4)));
      for (auto& parameter : layers.back()->parameters()) parameter.requires_grad_(i % 2 == 1);
    }
    all = register_parameter("all", torch::ones({4}) * 0.5, /*requires_grad=*/false);
  }
  torch::Tensor forward(const Batch& batch) {
    torch::Tensor x = batch["x"];
    for (auto& layer : layers) x = torch::tanh(layer->forward(x) * all);
    return x.square().mean();
  }
};

Workload half_frozen() {
  return {make_model(std::make_shared<HalfFrozen>()),
          tensor_source({{"x", torch::linspace(-1, 1, 64).view({16, 4})}}), nullptr};
}

record::Recording recording_of(const Workload& workload) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        graph::Mode::kTrain);
}

layout::Plan plan_for(const graph::Graph& graph, int stages, const BatchLayout& batch) {
  return layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                  layout::even_cuts(graph, stages), batch);
}

constexpr BatchLayout kBatch{16, 2, 2};

// Every rank held, and read back, the frozen parameters of all stages.
TEST(Frozen, ParametersLieWhereTheyAreUsed) {
  std::vector<int> num_layers(3);
  int num_all = 0;
  std::mutex mutex;
  run_ranks(3, [&](const collectives::World& world) {
    const Workload workload = construct(half_frozen, 3);
    const auto recorded = recording_of(workload);
    RankSession session(world, workload, recorded, plan_for(recorded.graph, 3, kBatch), {});
    session.step();
    const std::lock_guard lock(mutex);
    for (const NamedTensor& item : workload.model.parameters) {
      const bool is_frozen = !item.tensor.requires_grad();
      const bool is_here = item.tensor.numel() > 0;
      if (item.name == "all") num_all += is_here ? 1 : 0;
      if (is_frozen && item.name.ends_with(".weight")) num_layers[world.rank()] += is_here ? 1 : 0;
    }
  });
  EXPECT_EQ(num_all, 3);
  EXPECT_EQ(num_layers[0] + num_layers[1] + num_layers[2], 3);
  for (const int num : num_layers) EXPECT_LT(num, 3);
}

TEST(Frozen, ModelsHaveTheBitsOfTheSerialExecutor) {
  const Workload workload = construct(half_frozen, 3);
  const layout::Plan plan = plan_for(recording_of(workload).graph, 3, kBatch);
  const ComparedSteps options{.num_steps = 2, .seed = 3};
  const reference::RunRecord reference = run_serial(half_frozen, plan, options);
  run_ranks(3, [&](const collectives::World& world) {
    const Comparison result = verify_rank(world, half_frozen, plan, options, reference);
    EXPECT_EQ(first_difference(world, result), "");
  });
}

/// Trains to `end` on `stages` ranks from the newest checkpoint, if there is one; all weights.
Tensors train_frozen_to(std::int64_t end, int stages, const checkpoint::Folder& folder) {
  Tensors result;
  run_ranks(stages, [&](const collectives::World& world) {
    const Workload workload = construct(half_frozen, 3);
    const auto recorded = recording_of(workload);
    const layout::Plan plan = plan_for(recorded.graph, stages, kBatch);
    RankSession session(world, workload, recorded, plan, {.seed = 3});
    if (const auto step = newest_whole(world, folder)) {
      checkpoint::Reader reader(folder.published(*step), checkpoint::Checksums::kCompared);
      session.resume(reader);
    }
    while (session.next_step() < end) session.step();
    CheckpointWriter(world, folder, training_facts(workload, recorded, plan, session.options()))
        .save(session);
    const Tensors state = gather_state(world, workload, session);
    if (world.rank() == 0) {
      for (const auto& [name, tensor] : state) result[name] = tensor.clone();
    }
  });
  return result;
}

struct OwnCheckpoints {
  fs::path path = fs::temp_directory_path() / ("trireme_frozen_" + std::to_string(::getpid()));
  OwnCheckpoints() { fs::remove_all(path); }
  ~OwnCheckpoints() { fs::remove_all(path); }
};

TEST(Frozen, ParametersMoveWithACheckpoint) {
  const OwnCheckpoints own;
  const checkpoint::Folder straight(own.path / "straight"), moved(own.path / "moved");
  const Tensors expected = train_frozen_to(4, 1, straight);
  train_frozen_to(2, 3, moved);
  train_frozen_to(3, 2, moved);
  const Tensors actual = train_frozen_to(4, 3, moved);
  ASSERT_EQ(actual.size(), 13U);
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    EXPECT_TRUE(at::equal(actual.at(name), tensor)) << name;
  }
}

// A damaged newest checkpoint ended every resume until somebody removed it.
TEST(NewestWhole, IsTheOneBeforeADamagedOne) {
  const OwnCheckpoints own;
  const checkpoint::Folder folder(own.path);
  EXPECT_TRUE(folder.steps().empty());
  for (const int step : {1, 2, 3}) train_frozen_to(step, 2, folder);
  fs::resize_file(folder.published(3) / "rank-1.safetensors", 100);
  {
    std::fstream file(folder.published(2) / "rank-0.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
  }
  run_ranks(3, [&](const collectives::World& world) { EXPECT_EQ(newest_whole(world, folder), 1); });
  EXPECT_EQ(folder.steps(), std::vector<std::int64_t>{1});
  EXPECT_TRUE(fs::exists(own.path / "step-3.damaged"));
  fs::remove(folder.published(1) / "rank-0.safetensors");
  const Error error = error_of(
      [&] { run_ranks(2, [&](const collectives::World& world) { newest_whole(world, folder); }); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_EQ(folder.steps(), std::vector<std::int64_t>{1});
}

TEST(Tolerant, TakesReplicasThatChangeTheLastBits) {
  const Workload workload = construct(half_frozen, 3);
  layout::Plan plan = plan_for(recording_of(workload).graph, 1, {12, 2, 6});
  layout::set_replicas(plan, 2);
  const auto train = [&](bool tolerant) {
    run_ranks(2, [&](const collectives::World& world) {
      const Workload mine = construct(half_frozen, 3);
      const auto recorded = recording_of(mine);
      RankSession session(world, mine, recorded, plan, {.seed = 3, .tolerant = tolerant});
      session.step();
      session.check_replicas();
      EXPECT_EQ(training_facts(mine, recorded, plan, session.options()).at("replicas"), "2");
    });
  };
  EXPECT_THAT(error_of([&] { train(false); }).message(),
              testing::AllOf(HasSubstr("3 each, which is no power of two"),
                             HasSubstr("accept other last bits with --tolerant")));
  EXPECT_NO_THROW(train(true));
}

}  // namespace
}  // namespace trireme::train
