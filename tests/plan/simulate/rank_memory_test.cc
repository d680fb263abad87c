#include "trireme/plan/simulate/rank_memory.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/kernels/reduce/tree.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;

std::vector<RankMemory> memory_of(const layout::testing::Model& model, const layout::Plan& plan,
                                  const MemoryOptions& options = {}) {
  const auto map = layout::make_parameter_map(model.graph, plan);
  return rank_memory(model.graph, plan, map, stage_tensors(model.graph, plan, model.profile),
                     options);
}

TEST(Memory, GradientBuffersAreThoseOfTheTree) {
  for (int lanes = 1; lanes <= 130; ++lanes) {
    EXPECT_EQ(num_gradient_buffers(lanes), kernels::LaneTree::num_buffers(lanes)) << lanes;
  }
}

TEST(Memory, EachKindByItself) {
  // Parameters of 16 and 32 elements, outputs of 10 and 20.
  const auto model = make_chain({{1, 1, 1, 10, 16}, {1, 1, 1, 20, 32}});
  layout::Plan plan = make_plan(model.graph, {{1}, 4, 1, "interleaved"});
  plan.batch.lanes = 2;
  const std::vector<RankMemory> ranks = memory_of(model, plan);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].parameters, 64);
  EXPECT_EQ(ranks[0].gradients, 2 * 64);
  EXPECT_EQ(ranks[0].optimizer, 128);
  EXPECT_EQ(ranks[0].activations, 2 * 40);  // Its output, which it sends; two in flight.
  // After 0F1: two values that nobody has taken, a gradient asked for and one more.
  const std::int64_t message = schedule::kMessageHeaderBytes + 40;
  EXPECT_EQ(ranks[0].messages + ranks[0].transient, 4 * message);
  EXPECT_EQ(ranks[0].batch, 17 * 4);  // 16 are read ahead
  EXPECT_EQ(ranks[0].fixed, 0);
  EXPECT_EQ(ranks[1].parameters, 128);
  EXPECT_EQ(ranks[1].activations, 40);
  // After 1B1: two gradients, two values; its activations are gone.
  EXPECT_EQ(ranks[1].messages + ranks[1].transient, 4 * message - 40);
  EXPECT_EQ(ranks[1].batch, 0);  // Its stage takes no field, so it reads nothing.
  EXPECT_EQ(ranks[1].total(), 128 + 256 + 256 + 4 * message);
  EXPECT_EQ(memory_of(model, plan, {0})[1].optimizer, 0);
  EXPECT_EQ(ranks[0].by_kind().at("optimizer"), 128);
  EXPECT_FALSE(ranks[0].by_kind().contains("fixed"));
}

// Under `simple` a stage holds all of its three microbatches; offloaded, one at a time.
TEST(Memory, WhatIsInAFileIsNotHeld) {
  const auto model = make_chain({{1, 1, 1, 1000, 16}, {1, 1, 1, 20, 32}});
  layout::Plan plan = make_plan(model.graph, {{1}, 3, 1, "simple"});
  const std::vector<RankMemory> held = memory_of(model, plan);
  plan.stages[0].offload = true;
  const std::vector<RankMemory> ranks = memory_of(model, plan);
  EXPECT_EQ(held[0].activations, 3 * 4000);
  EXPECT_EQ(ranks[0].activations, 4000);
  EXPECT_EQ(ranks[1], held[1]);
}

// Two replicas of two lanes each: two buffers of f32, and what is sent.
TEST(Memory, ReplicasThatSendBf16HoldACopy) {
  const auto model = make_chain({{1, 1, 1, 10, 16}});
  layout::Plan plan = make_plan(model.graph, {{}, 4, 2});
  plan.batch.lanes = 4;
  const MemoryOptions options{.gradient_dtype = Dtype::kBf16};
  EXPECT_EQ(memory_of(model, plan)[0].gradients, 16 * (2 * 4));
  EXPECT_EQ(memory_of(model, plan, options)[0].gradients, 16 * (2 * 4 + 2));
  const layout::Plan alone = make_plan(model.graph, {{}, 4, 1});
  EXPECT_EQ(memory_of(model, alone, options)[0].gradients, 16 * 4);
  EXPECT_EQ(held_bytes_per_element(Dtype::kF64, Dtype::kBf16, 2, 2), 2 * 8);
}

TEST(Memory, ReplicasMayShareTheOptimizersState) {
  const auto model = make_chain({{1, 1, 1, 10, 3 * 16384}});
  layout::Plan plan = make_plan(model.graph, {{}, 4, 2});
  plan.sharded_state = true;
  const std::vector<RankMemory> ranks = memory_of(model, plan);
  EXPECT_EQ(ranks[0].optimizer + ranks[1].optimizer, 3 * 16384 * 8);
  EXPECT_NE(ranks[0].optimizer, ranks[1].optimizer);
  EXPECT_EQ(ranks[0].parameters, ranks[1].parameters);
}

/// Three stages of one rank, of two shards each, on two replicas: what each of three stages has is a unit.
TEST(Memory, ShardsOfParametersAreWholeWhereTheirStagesRun) {
  constexpr std::int64_t kElements = 2 * 16384, kUnit = kElements * 4;
  const auto model =
      make_chain(std::vector<layout::testing::ChainNode>(3, {1, 1, 1, 1, kElements}));
  layout::Plan plan = make_plan(model.graph, {{1, 2}, 1, 2});
  schedule::deal_out_stages(plan, 3);
  layout::set_replicas(plan, 2);
  plan.sharded_state = true;
  const RankMemory state = memory_of(model, plan)[0];
  EXPECT_EQ(state.parameters + state.gradients, (3 + 3) * kUnit);
  plan.sharded_parameters = true;
  for (const RankMemory& rank : memory_of(model, plan)) {
    // In 1B0: shards, the values of stages 1 and 0, and gradients of 1, and of 2, whose sum goes on beside it.
    EXPECT_EQ(rank.parameters, 3 * kUnit / 2 + 2 * kUnit);
    EXPECT_EQ(rank.gradients, 2 * kUnit);
    EXPECT_EQ(rank.optimizer, 3 * kUnit / 2 * 2);
  }
  // Sums that are rounded have a copy that is sent.
  const MemoryOptions options{.gradient_dtype = Dtype::kBf16};
  EXPECT_EQ(memory_of(model, plan, options)[0].gradients, 2 * kUnit + 2 * kUnit / 2);
  // In 1B1 of two lanes each: a second buffer until the lanes are added, and the shard of stage 2.
  plan.batch = {.global_batch = 4, .microbatch = 1, .lanes = 4};
  EXPECT_EQ(memory_of(model, plan)[0].gradients, 2 * kUnit + kUnit / 2);
}

// Where one stage is all of the rank's, its values are whole all the time.
TEST(Memory, ShardsOfOneStageSaveNothingWhileItRuns) {
  constexpr std::int64_t kElements = 2 * 16384;
  const auto model = make_chain({{1, 1, 1, 1, kElements}});
  layout::Plan plan = make_plan(model.graph, {{}, 1, 2});
  plan.sharded_state = plan.sharded_parameters = true;
  const RankMemory rank = memory_of(model, plan)[1];
  EXPECT_EQ(rank.parameters, kElements * 4 * 3 / 2);
  EXPECT_EQ(rank.gradients, kElements * 4);
}

TEST(Memory, SimpleHoldsAllMicrobatches) {
  const auto model = make_chain({{1, 1, 1, 10}, {1, 1, 1, 20}});
  EXPECT_EQ(memory_of(model, make_plan(model.graph, {{1}, 4}))[1].activations, 4 * 40);
}

/// Four stages, eight microbatches.
TEST(Memory, EarlyStagesOfInterleavedHoldMore) {
  const auto model = make_chain(std::vector<layout::testing::ChainNode>(4, {1, 1, 1, 10}));
  const auto held = [&](const std::string& schedule) {
    const layout::Plan plan = make_plan(model.graph, {{1, 2, 3}, 8, 1, schedule});
    const auto tensors = stage_tensors(model.graph, plan, model.profile);
    std::vector<std::int64_t> held;
    for (const RankMemory& rank : memory_of(model, plan)) {
      held.push_back(rank.activations / tensors[held.size()].kept);
    }
    return held;
  };
  EXPECT_EQ(held("interleaved"), (std::vector<std::int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(held("simple"), (std::vector<std::int64_t>{8, 8, 8, 8}));
}

TEST(Memory, ReplicasHoldTheSame) {
  const auto model = make_chain({{1, 1, 1, 10}, {1, 1, 1, 20}});
  const auto ranks = memory_of(model, make_plan(model.graph, {{1}, 4, 2}));
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[0], ranks[1]);
  EXPECT_EQ(ranks[2], ranks[3]);
  EXPECT_NE(ranks[0], ranks[2]);
}

TEST(Memory, UnusedParametersBuffersAndConstantsAreEverywhere) {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {4});
  b.frozen("unused", {8});
  b.buffer("table", {16});
  const graph::ValueId c = b.constant({1, 2, 3, 4});
  b.loss(b.node("mul", {x, c, b.parameter("p", {4})}, b.batch({4})));
  EXPECT_EQ(fixed_bytes(b.graph()), 32 + 64 + 16);
}

// They were priced, and lay, on every rank.
TEST(Memory, FrozenParametersAreWhereTheyAreUsed) {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {4});
  const graph::ValueId both = b.frozen("both", {8, 4}), late = b.frozen("late", {4});
  const graph::ValueId h = b.node("mul", {x, b.parameter("p", {4}), both}, b.batch({4}));
  b.loss(b.node("mul", {h, late, both}, b.batch({4})));
  const layout::Plan plan = make_plan(b.graph(), {{1}, 4, 1});
  EXPECT_EQ(fixed_bytes(b.graph()), 0);
  EXPECT_EQ(fixed_bytes(b.graph(), plan), (std::vector<std::int64_t>{128, 128 + 16}));
}

TEST(ValueBytes, AreThoseOfTheMemoryThatIsSpanned) {
  graph::Value value;
  value.shape = {{1, 0}, {0, 3}, {0, 4}};
  value.strides = {{0, 12}, {0, 4}, {0, 1}};
  EXPECT_EQ(span_bytes(value, 2), 96);
  value.strides = {{0, 0}, {0, 4}, {0, 1}};  // Expanded over the batch.
  EXPECT_EQ(span_bytes(value, 2), 48);
  value.strides = {{0, 24}, {0, 8}, {0, 1}};  // Half of each row.
  EXPECT_EQ(span_bytes(value, 2), (24 + 16 + 3 + 1) * 4);
  EXPECT_EQ(span_bytes(value, 0), 0);
  value.shape = {};
  value.strides = {};
  EXPECT_EQ(span_bytes(value, 2), 4);
}

}  // namespace
}  // namespace trireme::simulate
