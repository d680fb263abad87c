#include "trireme/plan/analytic/layout_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace trireme::analytic {
namespace {

TrainLayout layout_of(std::int64_t tensor, RecomputeKind recompute, bool has_sequence_parallel) {
  TrainLayout layout;
  layout.tensor = tensor;
  layout.microbatch = 4;
  layout.global_batch = 4;
  layout.seq_len = 2048;
  layout.type = MatrixType::kF16;
  layout.recompute = recompute;
  layout.has_sequence_parallel = has_sequence_parallel;
  return layout;
}

/// arXiv 2205.05198, table 2, for 22B: sbh(34 + 5as/h), sbh(10 + 24/t + 5as/ht), sbh/t (34 + 5as/h), 34 sbh/t, 2 sbh.
TEST(LayoutMemory, ActivationsAreTheFormulas) {
  const ModelShape shape = model("gpt-22b");
  const double s = 2048, b = 4, h = 6144, a = 64, t = 8;
  const double sbh = s * b * h, scores = 5 * a * s / h;
  using Kind = RecomputeKind;
  const auto bytes = [&](std::int64_t tensor, Kind kind, bool sequence) {
    return block_activation_bytes(shape, layout_of(tensor, kind, sequence));
  };
  EXPECT_DOUBLE_EQ(bytes(1, Kind::kNone, false), sbh * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(8, Kind::kNone, false), sbh * (10 + 24 / t + scores / t));
  EXPECT_DOUBLE_EQ(bytes(8, Kind::kNone, true), sbh / t * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(8, Kind::kSelective, true), sbh / t * 34);
  // Inputs of both halves 4, output of attention 2, half of 3 + 4 outputs of products.
  EXPECT_DOUBLE_EQ(bytes(1, Kind::kHalf, false), sbh * (4 + 2 + 7));
  EXPECT_DOUBLE_EQ(bytes(8, Kind::kFull, false), 2 * sbh);
  EXPECT_DOUBLE_EQ(bytes(8, Kind::kFull, true), 2 * sbh / t);
}

/// 16 bytes a parameter of Adam in mixed precision with 16-bit gradients; parts for replicas.
TEST(LayoutMemory, StatesAreSharedAsSharded) {
  const ModelShape shape = model("gpt3-5b");
  TrainLayout layout = layout_of(1, RecomputeKind::kFull, false);
  layout.data = 8;
  layout.global_batch = 32;
  PipelineClocks clocks;
  const auto n = static_cast<double>(parameters(shape));
  const auto states = [&](ShardingKind kind) {
    layout.sharding = kind;
    const MemoryByKind memory = rank_memory(shape, layout, clocks).front();
    return (memory.values + memory.gradients + memory.state) / n;
  };
  EXPECT_DOUBLE_EQ(states(ShardingKind::kNone), 16);
  EXPECT_DOUBLE_EQ(states(ShardingKind::kState), 4 + 2 + 12.0 / 8);  // Gradients twice.
  EXPECT_DOUBLE_EQ(states(ShardingKind::kGradients), 2.0 / 8 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(states(ShardingKind::kParameters), 14.0 / 8);
}

/// What logs of NVIDIA/dgxc-benchmarking say after a step (commit 85380ff): 2 + 2 + 12 / replicas bytes a parameter.
TEST(LayoutMemory, StatesAreWhatMegatronAllocates) {
  const auto allocated = [](const char* name, std::int64_t tensor, std::int64_t replicas) {
    TrainLayout layout;
    layout.tensor = tensor;
    layout.data = replicas;
    layout.global_batch = 4 * replicas;
    layout.seq_len = 4096;
    layout.sharding = ShardingKind::kState;
    set_habits(machine("dgx_h100"), layout);
    PipelineClocks clocks;
    const MemoryByKind memory = rank_memory(model(name), layout, clocks).front();
    return memory.values + memory.gradients + memory.state;
  };
  EXPECT_NEAR(allocated("llama3-8b", 1, 8) / 44271689728.0, 1, 0.005);
  EXPECT_NEAR(allocated("nemotron-15b", 2, 32) / 34466545664.0, 1, 0.01);
}

TEST(LayoutMemory, BlackwellKeepsWeightsOf8BitsOnce) {
  const auto values = [](const char* where, MatrixType type) {
    TrainLayout layout;
    layout.seq_len = 8192;
    layout.type = type;
    set_habits(machine(where), layout);
    PipelineClocks clocks;
    const ModelShape& shape = model("llama3-8b");
    return rank_memory(shape, layout, clocks).front().values /
           static_cast<double>(parameters(shape));
  };
  EXPECT_DOUBLE_EQ(values("dgx_h100", MatrixType::kF8), 2);
  EXPECT_DOUBLE_EQ(values("gb200_nvl72", MatrixType::kF8), 1);
  EXPECT_DOUBLE_EQ(values("gb200_nvl72", MatrixType::kBf16), 2);
}

/// Inputs of products in 8 bits; attention's output beside its copy, and outputs of products, in 16.
TEST(LayoutMemory, ProductsOf8BitsKeepTheirInputsInThem) {
  const ModelShape shape = model("llama3-8b");
  TrainLayout layout = layout_of(1, RecomputeKind::kNone, false);
  layout.has_fused_attention = true;
  layout.type = MatrixType::kBf16;
  const double wide = block_activation_bytes(shape, layout);
  layout.type = MatrixType::kF8;
  const double tokens = 4 * 2048, h = 4096, ffn = 14336;
  EXPECT_DOUBLE_EQ(wide - block_activation_bytes(shape, layout), tokens * (2 * h + ffn - h));
}

TEST(LayoutMemory, TheFirstRankOfAPipelineHoldsMost) {
  TrainLayout layout = layout_of(8, RecomputeKind::kNone, true);
  layout.pipeline = 4;
  layout.microbatch = 1;
  layout.global_batch = 32;
  PipelineClocks clocks;
  const std::vector<MemoryByKind> ranks = rank_memory(model("gpt-22b"), layout, clocks);
  EXPECT_DOUBLE_EQ(ranks[0].activations, 4 * ranks[3].activations);
  EXPECT_DOUBLE_EQ(ranks[1].activations, 3 * ranks[3].activations);
  EXPECT_GT(ranks[3].working, ranks[0].working);  // Logits.
}

TEST(LayoutMemory, BlocksAreSplitInOrderAndByOneAtMost) {
  for (const std::int64_t blocks : {1, 7, 30, 96, 126}) {
    for (std::int64_t parts = 1; parts <= std::min<std::int64_t>(blocks, 20); ++parts) {
      const std::vector<std::int64_t> first = split_blocks(blocks, parts);
      ASSERT_EQ(first.size(), static_cast<std::size_t>(parts + 1));
      EXPECT_EQ(first.front(), 0);
      EXPECT_EQ(first.back(), blocks);
      std::int64_t least = blocks, most = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        least = std::min(least, first[part + 1] - first[part]);
        most = std::max(most, first[part + 1] - first[part]);
      }
      EXPECT_LE(most - least, 1);
      EXPECT_GE(least, 1);
    }
  }
  EXPECT_EQ(split_blocks(10, 4), (std::vector<std::int64_t>{0, 2, 5, 8, 10}));
}

TEST(LayoutMemory, RanksHaveAllParametersTogether) {
  const ModelShape shape = model("llama3-405b");
  TrainLayout layout = layout_of(8, RecomputeKind::kNone, true);
  layout.pipeline = 9;
  layout.virtual_stages = 7;
  const std::vector<double> counts = rank_parameters(shape, layout);
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
  EXPECT_DOUBLE_EQ(sum * 8, static_cast<double>(parameters(shape)));
}

}  // namespace
}  // namespace trireme::analytic
