#include "trireme/engine/train/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <mutex>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"
#include "trireme/engine/train/serial_session.h"

namespace trireme::train {
namespace {

using ::testing::HasSubstr;
using trireme::test::error_of;

TEST(LossScale, HalvesWhereAStepIsNotFiniteAndDoublesAfterSomeThatAre) {
  LossScale scale({.initial = 8, .growth_steps = 2});
  EXPECT_TRUE(scale.end_step("", 0));
  EXPECT_EQ(scale.value(), 8);
  EXPECT_TRUE(scale.end_step("", 1));
  EXPECT_EQ(scale.value(), 16);
  EXPECT_FALSE(scale.end_step("loss 'a' is inf", 2));
  EXPECT_EQ(scale.value(), 8);
  EXPECT_TRUE(scale.end_step("", 3));
  LossScale other({.initial = 2, .growth_steps = 2});
  other.restore(scale.state());
  EXPECT_TRUE(other.end_step("", 4));
  EXPECT_EQ(other.value(), 16);
}

TEST(LossScale, EndsWhereScalingDoesNotHelp) {
  LossScale scale({.initial = 2});
  EXPECT_FALSE(scale.end_step("loss 'a' is nan", 0));
  const Error error = error_of([&] { scale.end_step("loss 'a' is nan", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("loss 'a' is nan"));
}

TEST(LossScale, IsAPowerOfTwo) {
  EXPECT_FALSE(LossScale(LossScaleOptions{}).is_on());
  EXPECT_EQ(LossScale(LossScaleOptions{}).value(), 1);
  for (const double bad : {3.0, 0.5, 0x1p30}) {
    EXPECT_THAT(error_of([&] { LossScale({.initial = bad}); }).message(),
                HasSubstr("a power of two"));
  }
  EXPECT_THROW(LossScale({.initial = 2, .growth_steps = 0}), Error);
}

/// Its gradients are infinite in steps 2 and 3, however they are scaled.
MakeWorkload overflowing() {
  return [] {
    Workload workload = workload_of("mlp")();
    workload.model.step_scalars.push_back(
        {"scalar", [](std::int64_t step) { return step == 2 || step == 3 ? INFINITY : 1.0; }});
    workload.model.forward = [forward = workload.model.forward](const Batch& batch) {
      Losses losses = forward(batch);
      losses[0].value = losses[0].value * batch["scalar"];
      return losses;
    };
    return workload;
  };
}

struct Trained {
  std::vector<std::int64_t> skipped;
  std::vector<double> scales;
  Tensors weights;
};

void add(const StepReport& report, Trained& run) {
  if (report.is_skipped) run.skipped.push_back(report.step);
  run.scales.push_back(report.loss_scale);
}

Trained run_of(const Layout& layout, const TrainingOptions& options) {
  const layout::Plan plan = plan_of(layout, overflowing());
  Trained run;
  std::mutex mutex;
  run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
    const Workload workload = construct(overflowing(), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    RankSession session(world, workload, recorded, plan, options);
    for (int step = 0; step < 6; ++step) {
      const StepReport report = session.step();
      if (world.rank() == 0) add(report, run);
    }
    const RankSession::WholeValues whole(session);
    const std::lock_guard lock(mutex);
    for (const std::string& name : session.store().names()) {
      run.weights[name] = session.store().value(name).clone();
    }
  });
  return run;
}

TEST(LossScale, SkipsTheSameStepsOnAllRanksAsInOneProcess) {
  const TrainingOptions options{.seed = 3,
                                .optimizer = {.learning_rate = 0.01, .clip_norm = 0.5},
                                .loss_scale = {.initial = 64, .growth_steps = 2}};
  const Layout one{.model = "mlp"};
  Trained expected;
  {
    const Workload workload = construct(overflowing(), 3);
    const auto recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       graph::Mode::kTrain);
    SerialSession session(workload, recorded, plan_of(one, overflowing()), options);
    for (int step = 0; step < 6; ++step) add(session.step(), expected);
    for (const std::string& name : session.store().names()) {
      expected.weights[name] = session.store().value(name).clone();
    }
  }
  EXPECT_EQ(expected.skipped, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(expected.scales, (std::vector<double>{64, 64, 128, 64, 32, 32}));
  for (const Layout& layout :
       {Layout{.model = "mlp", .stages = 2},
        Layout{.model = "mlp", .stages = 2, .replicas = 2, .shards_state = true},
        Layout{.model = "mlp",
               .stages = 2,
               .replicas = 2,
               .stages_per_rank = 2,
               .shards_parameters = true}}) {
    const Trained run = run_of(layout, options);
    EXPECT_EQ(run.skipped, expected.skipped);
    EXPECT_EQ(run.scales, expected.scales);
    for (const auto& [name, weight] : expected.weights) {
      EXPECT_TRUE(at::equal(run.weights.at(name), weight)) << name;
      EXPECT_TRUE(weight.isfinite().all().item<bool>()) << name;
    }
  }
}

}  // namespace
}  // namespace trireme::train
