#include "trireme/plan/analytic/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "trireme/error.h"
#include "trireme/plan/analytic/block_time.h"

namespace trireme::analytic {
namespace {

using ::testing::HasSubstr;

TrainLayout megatron_175b() {
  TrainLayout layout;
  layout.tensor = 8;
  layout.pipeline = 8;
  layout.data = 8;
  layout.microbatch = 2;
  layout.global_batch = 1536;
  layout.seq_len = 2048;
  layout.type = MatrixType::kF16;
  layout.recompute = RecomputeKind::kFull;
  return layout;
}

AnalyticStep step_of(const TrainLayout& layout, const char* name = "gpt3-175b",
                     const char* where = "dgx_a100") {
  PipelineClocks clocks;
  return predict(model(name), machine(where), layout, AchievedParts{}, clocks);
}

std::string refusal_of(const std::function<void(TrainLayout&)>& change) {
  TrainLayout layout = megatron_175b();
  change(layout);
  try {
    step_of(layout);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(Predict, PartsAddUpToTheStep) {
  const AnalyticStep step = step_of(megatron_175b());
  EXPECT_NEAR(step.compute_s + step.tensor_s + step.transfer_s + step.bubble_s + step.reduction_s +
                  step.update_s + step.other_s,
              step.step_s, 1e-9 * step.step_s);
  for (const double part : {step.compute_s, step.tensor_s, step.transfer_s, step.bubble_s,
                            step.reduction_s, step.update_s, step.other_s}) {
    EXPECT_GT(part, 0);
  }
  // 8 x 175e9 x 2048 x 1536 FLOPs on 512 devices of 312 TFLOP/s at best; published: 55 to 58 s.
  EXPECT_GT(step.step_s, 1.1 * 27.6);
  EXPECT_LT(step.step_s, 80);
}

TEST(Predict, MoreOfAnythingThatCostsTakesLonger) {
  const double step_s = step_of(megatron_175b()).step_s;
  TrainLayout layout = megatron_175b();
  layout.global_batch *= 2;
  EXPECT_GT(step_of(layout).step_s, 1.8 * step_s);
  layout = megatron_175b();
  layout.recompute = RecomputeKind::kNone;
  EXPECT_LT(step_of(layout).step_s, step_s);
  const double none_s = step_of(layout).step_s;
  layout.recompute = RecomputeKind::kSelective;
  const double selective_s = step_of(layout).step_s;
  layout.recompute = RecomputeKind::kHalf;
  const double half_s = step_of(layout).step_s;
  EXPECT_LT(none_s, selective_s);
  EXPECT_LT(selective_s, half_s);
  EXPECT_LT(half_s, step_s);
  layout = megatron_175b();
  layout.virtual_stages = 3;
  EXPECT_LT(step_of(layout).bubble_s, 0.5 * step_of(megatron_175b()).bubble_s);
  // A quarter of the network.
  EXPECT_GT(step_of(megatron_175b(), "gpt3-175b", "p4de").reduction_s,
            3 * step_of(megatron_175b()).reduction_s);
  // The peak is higher.
  layout = megatron_175b();
  EXPECT_LT(step_of(layout, "gpt3-175b", "dgx_h100").step_s, 0.7 * step_s);
}

TEST(Predict, SmallProductsAchieveLess) {
  const TrainLayout layout = megatron_175b();
  const BlockTimes times(model("gpt3-175b"), machine("dgx_a100"), layout, AchievedParts{});
  const double peak = 312e12 * AchievedParts{}.matrix;
  const auto achieved = [&](double m, double n, double k) {
    return 2 * m * n * k / times.product_s({m, n, k}, peak) / peak;
  };
  EXPECT_GT(achieved(16384, 16384, 16384), 0.97);
  EXPECT_LT(achieved(16384, 16384, 128), 0.65);
  EXPECT_LT(achieved(128, 128, 4096), 0.1);
  EXPECT_LT(achieved(2048, 1536, 12288), achieved(8192, 1536, 12288));
}

/// 108 units: a tile more than they have takes another wave, if of smaller tiles.
TEST(Predict, ProductsGoInWavesOfTiles) {
  const BlockTimes times(model("gpt3-175b"), machine("dgx_a100"), megatron_175b(), AchievedParts{});
  const double wave_s = times.product_s({128 * 108, 256, 65536}, 1e12);
  EXPECT_GT(times.product_s({128 * 109, 256, 65536}, 1e12), 1.4 * wave_s);
  EXPECT_NEAR(times.product_s({128 * 216, 256, 65536}, 1e12), 2 * wave_s, 0.01 * wave_s);
  EXPECT_NEAR(times.product_s({256, 128 * 108, 65536}, 1e12), wave_s, 0.01 * wave_s);
}

/// As a weight's gradient has it in a convolution: two tiles and a long sum, which all units share.
TEST(Predict, UnitsShareALongSumOfFewTiles) {
  const BlockTimes times(model("gpt3-175b"), machine("dgx_a100"), megatron_175b(), AchievedParts{});
  const double m = 128, n = 256, k = 1 << 20, peak = 1e12;
  EXPECT_NEAR(times.product_s({m, n, k}, peak), 2 * m * n * k / peak, 0.05 * 2 * m * n * k / peak);
}

TEST(Predict, AllFamiliesHaveAStep) {
  for (const char* name : {"bert-large", "t5-3b", "mixtral-8x7b", "llama3-70b", "resnet50"}) {
    TrainLayout layout;
    layout.data = 8;
    layout.microbatch = 2;
    layout.global_batch = 64;
    layout.seq_len = model(name).seq_len;
    const AnalyticStep step = step_of(layout, name, "dgx_a100");
    EXPECT_GT(step.step_s, 0.02) << name;
    EXPECT_LT(step.step_s, 250) << name;
    EXPECT_GT(step.memory.total(), 16.0 * static_cast<double>(parameters(model(name)))) << name;
  }
}

/// mlcommons/training_results_v2.0 and v3.0: images a second of NVIDIA's resnet, which nothing was fitted on.
TEST(Predict, ResNet50IsAsFastAsInMlperf) {
  struct Run {
    const char* where;
    std::int64_t devices, batch;
    double images_per_s;
  };
  for (const Run& run : {Run{"dgx_a100", 8, 3264, 27164}, Run{"dgx_a100", 64, 3264, 167361},
                         Run{"dgx_h100", 64, 3200, 294860}}) {
    TrainLayout layout;
    layout.data = run.devices;
    layout.microbatch = run.batch / run.devices;
    layout.global_batch = run.batch;
    layout.seq_len = 224;
    layout.type = MatrixType::kF16;
    layout.has_async_steps = true;
    const Machine& where = machine(run.where);
    PipelineClocks clocks;
    const double step_s =
        predict_time(model("resnet50"), where, layout,
                     achieved_of(usual_achieved(), where.accelerator.name), clocks)
            .step_s;
    EXPECT_NEAR(step_s / (static_cast<double>(run.batch) / run.images_per_s), 1, 0.25) << run.where;
  }
}

TEST(Predict, RefusesWhatCannotBe) {
  EXPECT_EQ(refusal_of([](TrainLayout&) {}), "");
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.tensor = 5; }),
              HasSubstr("tensor 5 does not divide the 96 heads of gpt3-175b; give a divisor"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.data = 0; }),
              HasSubstr("data must be at least 1, got 0"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.data = 7; }),
              HasSubstr("data 7 x microbatch 2 does not divide the batch of 1536"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.pipeline = 99; }),
              HasSubstr("99 stages of 96 blocks; pipeline x virtual_stages is at most 98"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.context = 3; }), HasSubstr("context 3"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.schedule = "v_half"; }),
              HasSubstr("'v_half' is none of: simple, interleaved, zero_bubble"));
  EXPECT_THAT(refusal_of([](TrainLayout& l) { l.data = l.microbatch = std::int64_t{1} << 32; }),
              HasSubstr("data is 4294967296, above 2^20"));
}

TEST(Predict, TheSameAnswerEachTime) {
  const AnalyticStep first = step_of(megatron_175b());
  PipelineClocks clocks;
  for (int i = 0; i < 3; ++i) {
    const AnalyticStep again =
        predict(model("gpt3-175b"), machine("dgx_a100"), megatron_175b(), AchievedParts{}, clocks);
    EXPECT_EQ(again.step_s, first.step_s);
    EXPECT_EQ(again.memory.total(), first.memory.total());
  }
}

}  // namespace
}  // namespace trireme::analytic
