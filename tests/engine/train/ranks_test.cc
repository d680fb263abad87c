#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/memory_check.h"
#include "trireme/model.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::train {
namespace {

/// Every pair of model, stages, replicas with lanes, and schedule occurs.
std::vector<Layout> covering_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    for (std::size_t r = 0; r < std::size(kReplicas); ++r) {
      result.push_back({.model = models::names()[m],
                        .stages = static_cast<int>((m + r) % 4 + 1),
                        .replicas = kReplicas[r].replicas,
                        .lanes = kReplicas[r].lanes,
                        .schedule = kSchedules[(m + r) % 3]});
    }
  }
  return result;
}

class Ranks : public testing::TestWithParam<Layout> {};

TEST_P(Ranks, HaveTheBitsOfTheSerialExecutor) { expect_bits_of_serial_executor(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Covering, Ranks, testing::ValuesIn(covering_layouts()));

/// Several stages on a rank: every model with three of the schedules, on 1 to 3 ranks, with replicas.
std::vector<Layout> virtual_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t schedule = (3 * m + k) % std::size(kVirtualSchedules);
      const int each = schedule < 3 && m % 2 == 1 ? 3 : 2;
      const Replicas& replicas = kReplicas[(m + k) % 2];
      result.push_back({.model = models::names()[m],
                        .stages = each * static_cast<int>((m + k) % 3 + 1),
                        .replicas = replicas.replicas,
                        .lanes = replicas.lanes,
                        .schedule = kVirtualSchedules[schedule],
                        .stages_per_rank = each});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Virtual, Ranks, testing::ValuesIn(virtual_layouts()));

std::vector<Layout> recomputing_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    const int each = static_cast<int>(m % 2) + 1;
    result.push_back({.model = models::names()[m],
                      .stages = 2 * each,
                      .replicas = m % 3 == 0 ? 2 : 1,
                      .schedule = each == 2 ? kVirtualSchedules[m % 5] : kSchedules[m % 3],
                      .stages_per_rank = each,
                      .recomputes = true,
                      .regions = static_cast<int>(m % 4) + 1,
                      .shards_parameters = m % 3 == 0});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Recomputing, Ranks, testing::ValuesIn(recomputing_layouts()));

/// Every model with stages that offload, some of which recompute too: a file then holds what they received.
std::vector<Layout> offloading_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    const int each = static_cast<int>(m % 2) + 1;
    result.push_back({.model = models::names()[m],
                      .stages = 2 * each,
                      .replicas = m % 3 == 1 ? 2 : 1,
                      .schedule = each == 2 ? kVirtualSchedules[(m + 2) % 5] : kSchedules[m % 3],
                      .stages_per_rank = each,
                      .recomputes = m % 3 == 0,
                      .regions = static_cast<int>(m % 2) + 1,
                      .offloads = true,
                      .shards_parameters = m % 3 == 1});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Offloading, Ranks, testing::ValuesIn(offloading_layouts()));

std::vector<Layout> sharding_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    const int replicas = m % 3 == 2 ? 3 : m % 3 == 1 ? 4 : 2;
    result.push_back({.model = models::names()[m],
                      .stages = static_cast<int>(m % 4 + 1),
                      .replicas = replicas,
                      .lanes = replicas == 3 ? 6 : 4,
                      .schedule = kSchedules[m % 3],
                      .shards_state = true});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Sharding, Ranks, testing::ValuesIn(sharding_layouts()));

std::vector<Layout> precise_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    result.push_back({.model = models::names()[m],
                      .stages = static_cast<int>(m % 3 + 2),
                      .replicas = m % 2 == 0 ? 2 : 1,
                      .schedule = kSchedules[m % 3],
                      .recomputes = m % 4 == 1,
                      .shards_state = m % 4 == 2,
                      .shards_parameters = m % 4 == 0,
                      .precision = m % 2 == 0 ? Precision::kF16 : Precision::kBf16});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Precise, Ranks, testing::ValuesIn(precise_layouts()));

/// Every model with gradients that are rounded to bf16, on all numbers of replicas.
std::vector<Layout> rounding_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    for (std::size_t k = 0; k < 2; ++k) {
      const Replicas& replicas = kReplicas[(m + 3 * k) % std::size(kReplicas)];
      const int each = m % 5 == 1 ? 2 : 1;
      result.push_back({.model = models::names()[m],
                        .stages = each * static_cast<int>((m + k) % 3 + 1),
                        .replicas = replicas.replicas,
                        .lanes = replicas.lanes,
                        .schedule = kSchedules[(m + k) % 3],
                        .stages_per_rank = each,
                        .shards_state = k == 1 && replicas.replicas > 1,
                        .shards_parameters = k == 0 && replicas.replicas > 1,
                        .precision = m % 4 == 3 ? Precision::kBf16 : Precision::kF32,
                        .gradients = Dtype::kBf16});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Rounding, Ranks, testing::ValuesIn(rounding_layouts()));

// Else the other tests would prove nothing.
TEST(RankSession, GradientsInBf16GiveOtherBits) {
  const Layout layout{.model = "wide", .lanes = 4};
  const layout::Plan plan = plan_of(layout);
  const auto run = [&](Dtype dtype) {
    return run_serial(workload_of(layout), plan, {.num_steps = 2, .gradient_dtype = dtype});
  };
  const reference::RunRecord f32 = run(Dtype::kF32), bf16 = run(Dtype::kBf16);
  EXPECT_EQ(f32.losses[0], bf16.losses[0]);
  EXPECT_NE(f32.losses[1], bf16.losses[1]);
  EXPECT_NEAR(f32.losses[1], bf16.losses[1], 0.02 * std::abs(f32.losses[1]));
}

// Shards end within matrices, and norms are of blocks on several replicas.
TEST(RankSession, ReplicasThatShareStateHaveTheBitsOfOne) {
  expect_bits_of_one({.model = "wide", .stages = 2, .replicas = 4, .shards_state = true},
                     {"adamw", "sgd", "lamb", "lars", "novograd"});
}

TEST(RankSession, ReplicasKeepNoStateOfOthersShards) {
  std::mutex mutex;
  std::map<bool, std::vector<std::int64_t>> kept;
  for (const bool shards : {false, true}) {
    const Layout layout{.model = "wide", .replicas = 4, .shards_state = shards};
    const layout::Plan plan = plan_of(layout);
    run_ranks(4, [&](const collectives::World& world) {
      const Workload workload = construct(workload_of(layout.model), 3);
      const auto recorded =
          record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                         graph::Mode::kTrain);
      RankSession session(world, workload, recorded, plan, {.optimizer = {.name = "adamw"}});
      session.step();
      std::int64_t bytes = 0;
      for (const auto& [name, kinds] : session.state().optimizer.state()) {
        for (const auto& [kind, tensor] : kinds)
          bytes += static_cast<std::int64_t>(tensor.nbytes());
      }
      const std::lock_guard lock(mutex);
      kept[shards].push_back(bytes);
    });
  }
  for (const std::int64_t bytes : kept[true]) EXPECT_LT(bytes, kept[false][0] / 2);
}

TEST(RankSession, MostStagesOfTheModelsCanRecompute) {
  int num_can = 0, num_stages = 0;
  for (const Layout& layout : recomputing_layouts()) {
    for (const layout::Stage& stage : plan_of(layout).stages) {
      num_can += stage.recompute;
      ++num_stages;
    }
  }
  EXPECT_GE(num_can, num_stages * 3 / 4);
}

/// Every parameter that several stages use, owned by the last of them.
std::vector<layout::TieOwner> last_owners(const Layout& layout) {
  const Workload workload = construct(workload_of(layout.model), 3);
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const auto stages = layout::stages_of_values(recorded.graph, plan_of(layout));
  std::vector<layout::TieOwner> owners;
  for (const graph::Parameter& parameter : recorded.graph.parameters) {
    const auto users = stages.find(parameter.value);
    if (users == stages.end() || users->second.size() < 2) continue;
    owners.push_back({parameter.name, *users->second.rbegin()});
  }
  return owners;
}

// Plans that were searched name owners; none had been run.
TEST(RankSession, LaterStagesMayOwnWhatIsShared) {
  for (const Layout& layout :
       {Layout{.model = "transformer", .stages = 3, .replicas = 2},
        Layout{.model = "transformer", .stages = 4},
        Layout{.model = "transformer",
               .stages = 4,
               .replicas = 2,
               .schedule = "interleaved",
               .stages_per_rank = 2},
        Layout{.model = "transformer", .stages = 6, .schedule = "v_min", .stages_per_rank = 2}}) {
    const std::vector<layout::TieOwner> owners = last_owners(layout);
    ASSERT_FALSE(owners.empty());
    expect_bits_of_serial_executor(layout, owners);
  }
}

const ComparedSteps kTwoSteps{.num_steps = 2, .seed = 3};
const Layout kMlp{.model = "mlp", .stages = 2, .replicas = 2};

/// What each rank says first differs, where the reference was changed.
std::string difference_after(const std::function<void(reference::RunRecord&)>& change) {
  const layout::Plan plan = plan_of(kMlp);
  reference::RunRecord reference = run_serial(workload_of(kMlp.model), plan, kTwoSteps);
  change(reference);
  std::vector<std::string> found(4);
  run_ranks(4, [&](const collectives::World& world) {
    const Comparison mine = verify_rank(world, workload_of(kMlp.model), plan, kTwoSteps, reference);
    found[world.rank()] = first_difference(world, mine);
  });
  for (const std::string& one : found) EXPECT_EQ(one, found[0]);
  return found[0];
}

TEST(VerifyRank, OtherBitsAreNamedOnAllRanks) {
  const std::string last = workload_of(kMlp.model)().model.parameters.back().name;
  EXPECT_EQ(difference_after([&](reference::RunRecord& r) { r.weights.at(last) += "1"; }),
            "rank 2: weight '" + last + "'");
  EXPECT_EQ(difference_after([](reference::RunRecord& r) { r.losses[1] += 1; }),
            "rank 0: loss of step 1");
}

/// The model's own code does something else once it has been recorded, in each of its recordings.
Workload make_other_after_recording() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(4, 2);
  const auto calls = std::make_shared<int>(0);
  return {make_model(net,
                     [net, calls](const Batch& batch) {
                       const double factor = ++*calls > 3 ? 2 : 1;
                       return torch::tanh(net->forward(batch["x"])).mul(factor).square().mean();
                     }),
          tensor_source({{"x", torch::randn({40, 4})}}), nullptr};
}

TEST(VerifyRank, WhatIsNotThePlainModelIsSaidThoughRanksAgreeWithOneAnother) {
  const Workload workload = construct(make_other_after_recording, 3);
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const layout::Plan plan =
      layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                               layout::even_cuts(recorded.graph, 2), {8, 2, 1});
  run_ranks(2, [&](const collectives::World& world) {
    const ReferenceRun reference =
        verify_on_first(world, make_other_after_recording, plan, kTwoSteps);
    const Comparison ranks =
        verify_rank(world, make_other_after_recording, plan, kTwoSteps, reference.run);
    EXPECT_EQ(first_difference(world, ranks), "");
    if (world.rank() != 0) return;
    ASSERT_EQ(reference.comparisons.size(), 2U);
    EXPECT_TRUE(reference.comparisons[0].passes());
    EXPECT_EQ(reference.comparisons[1].first_difference, "loss of step 0");
    EXPECT_FALSE(reference.comparisons[1].passes());
  });
}

TEST(VerifyRank, WhatNobodyHoldsIsADifference) {
  EXPECT_EQ(difference_after([](reference::RunRecord& r) { r.weights["lost"] = "nowhere"; }),
            "rank 0: weight 'lost' is held by no rank");
}

TEST(CheckMemory, SaysHowManyBytesTooMany) {
  layout::Plan plan = plan_of({.model = kMlp.model, .stages = 2});
  const auto check = [&plan](std::int64_t bytes) {
    plan.prediction = Prediction{.peak_bytes = {{{"parameters", bytes}}, {}}};
    run_ranks(2, [&plan](const collectives::World& world) { check_memory(world, plan); });
  };
  EXPECT_NO_THROW(check(1 << 20));
  try {
    check(std::int64_t{1} << 50);
    ADD_FAILURE() << "a pebibyte fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_THAT(error.message(), testing::HasSubstr("more than it has left; partition with"));
  }
}

TEST(RankSession, ChecksDriftOnTheModelThatItTrains) {
  for (const bool drifts : {false, true}) {
    const auto train = [&] {
      run_ranks(2, [&](const collectives::World& world) {
        Workload workload = construct(workload_of(kMlp.model), 3);
        bool is_other = false;
        workload.model.forward = [inner = workload.model.forward, &is_other](const Batch& batch) {
          auto losses = inner(batch);
          if (is_other) losses[0].value = losses[0].value * 2;
          return losses;
        };
        const auto recorded =
            record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                           graph::Mode::kTrain);
        layout::Plan plan = plan_of({.model = kMlp.model, .stages = 2});
        RankSession session(world, workload, recorded, plan, {.drift_check_steps = {1}});
        is_other = drifts;
        for (int step = 0; step < 3; ++step) session.step();
      });
    };
    if (!drifts) {
      EXPECT_NO_THROW(train());
      continue;
    }
    try {
      train();
      ADD_FAILURE() << "drift was not noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.context().step, 1);
      EXPECT_THAT(error.what(), testing::HasSubstr("mul"));
    }
  }
}

}  // namespace
}  // namespace trireme::train
