#include "trireme/plan/published/run_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace trireme::published {
namespace {

using ::testing::HasSubstr;

RunRow row_of_18b() {
  RunRow row;
  row.row = 5;
  row.source = "paper";
  row.model = "GPT 18B";
  row.gpu_type = "A100-80GB";
  row.precision = "fp16";
  row.recompute = "full";
  row.gpus = 256;
  row.tp = 8;
  row.pp = 1;
  row.dp = 32;
  row.microbatch = 8;
  row.global_batch = 1024;
  row.seq_len = 2048;
  row.step_time_s = 9.4;
  return row;
}

RunCase made(const std::function<void(RunRow&)>& change) {
  RunRow row = row_of_18b();
  change(row);
  auto result = make_case(row);
  EXPECT_TRUE(std::holds_alternative<RunCase>(result));
  return std::get<RunCase>(result);
}

SkippedRun skipped(const std::function<void(RunRow&)>& change) {
  RunRow row = row_of_18b();
  change(row);
  auto result = make_case(row);
  if (!std::holds_alternative<SkippedRun>(result)) return {};
  return std::get<SkippedRun>(result);
}

TEST(RunCase, TakesWhatIsSaidAndTheUsualForTheRest) {
  const RunCase plain = made([](RunRow&) {});
  EXPECT_EQ(plain.shape.name, "gpt-18b");
  EXPECT_EQ(plain.layout.recompute, analytic::RecomputeKind::kFull);
  EXPECT_EQ(plain.layout.type, analytic::MatrixType::kF16);
  EXPECT_EQ(plain.layout.sharding, analytic::ShardingKind::kNone);
  EXPECT_FALSE(plain.layout.has_fused_attention);
  EXPECT_EQ(made([](RunRow& row) { row.dp = 0; }).layout.data, 32);
  const RunCase other = made([](RunRow& row) {
    row.layers = 10;
    row.hidden = 1024;
    row.heads = 16;
  });
  EXPECT_EQ(other.shape.layers, 10);
  EXPECT_EQ(other.shape.head_size, 64);
  const RunCase fsdp = made([](RunRow& row) {
    row.zero_fsdp = "FULL_SHARD";
    row.precision = "amp_bf16";
  });
  EXPECT_EQ(fsdp.layout.sharding, analytic::ShardingKind::kParameters);
  EXPECT_TRUE(fsdp.layout.is_eager);
  EXPECT_TRUE(fsdp.layout.has_fused_attention);
  const auto selective = [](const char* sharding) {
    return made([sharding](RunRow& row) {
             row.recompute = "selective";
             row.zero_fsdp = sharding;
           })
        .layout.recompute;
  };
  EXPECT_EQ(selective(""), analytic::RecomputeKind::kSelective);
  EXPECT_EQ(selective("FSDP2"), analytic::RecomputeKind::kHalf);
  const auto on = [](const char* device, const char* precision) {
    return [=](RunRow& row) {
      row.gpu_type = device;
      row.precision = precision;
    };
  };
  EXPECT_EQ(made(on("H100", "float8")).layout.type, analytic::MatrixType::kF8);
  EXPECT_EQ(skipped(on("A100-80GB", "float8")).reason, "the device has not this type");
}

TEST(RunCase, NoiseIsReadFromTheNote) {
  EXPECT_EQ(made([](RunRow&) {}).noise, 0);
  EXPECT_EQ(made([](RunRow& row) { row.note = "authors warn +-40% noise"; }).noise, 0.4);
}

TEST(RunCase, InterleavedWithoutADepthTakesTheNextThatDivides) {
  const auto change = [](RunRow& row) {
    row.model = "MT-NLG 530B";
    row.pp = 35;
    row.gpus = 8 * 35 * 8;
    row.dp = 8;
    row.global_batch = 1920;
    row.microbatch = 1;
    row.schedule = "interleaved 1F1B";
  };
  EXPECT_EQ(made(change).layout.virtual_stages, 3);
}

TEST(RunCase, StepTimesFollowFromRates) {
  EXPECT_DOUBLE_EQ(made([](RunRow& row) {
                     row.step_time_s = 0;
                     row.tokens_per_s_per_gpu = 1000;
                   }).step_s,
                   1024.0 * 2048 / (1000 * 256));
  EXPECT_DOUBLE_EQ(made([](RunRow& row) {
                     row.step_time_s = 0;
                     row.samples_per_s = 128;
                   }).step_s,
                   8);
  const RunCase by_flops = made([](RunRow& row) {
    row.step_time_s = 0;
    row.tflops_per_gpu = 100;
    row.flops_kind = "model";
  });
  EXPECT_NEAR(by_flops.step_s, 6 * 18.4e9 * 1024 * 2048 / (100e12 * 256), 0.8);
}

/// Counted FLOPs of four passes say that forwards were run again.
TEST(RunCase, CountedFlopsSayWhetherItRecomputed) {
  const auto recompute_at = [](double tflops) {
    return made([tflops](RunRow& row) {
             row.recompute = "not stated";
             row.tflops_per_gpu = tflops;
           })
        .layout.recompute;
  };
  EXPECT_EQ(recompute_at(135), analytic::RecomputeKind::kFull);
  EXPECT_EQ(recompute_at(101), analytic::RecomputeKind::kNone);
}

TEST(RunCase, SaysWhatIsMissing) {
  EXPECT_EQ(skipped([](RunRow& row) { row.microbatch = 0; }).reason, "no microbatch");
  EXPECT_EQ(skipped([](RunRow& row) { row.tp = 0; }).reason, "no tp");
  EXPECT_EQ(skipped([](RunRow& row) { row.dp = 31; }).reason, "tp x pp x dp is not gpus");
  EXPECT_EQ(skipped([](RunRow& row) { row.step_time_s = 0; }).reason, "no step time");
  EXPECT_EQ(skipped([](RunRow& row) { row.model = "Megalodon"; }).reason,
            "the model's shape is not known");
  EXPECT_EQ(skipped([](RunRow& row) { row.gpu_type = "TPU v3"; }).reason,
            "the device is not known");
  const SkippedRun heads = skipped([](RunRow& row) {
    row.tp = 32;
    row.dp = 8;
  });
  EXPECT_EQ(heads.row, 5);
  EXPECT_EQ(heads.reason, "the layout cannot be");
  EXPECT_THAT(heads.detail, HasSubstr("tensor 32 does not divide the 48 heads"));
  EXPECT_THAT(skipped([](RunRow& row) { row.microbatch = 7; }).detail,
              HasSubstr("does not divide the batch"));
}

}  // namespace
}  // namespace trireme::published
