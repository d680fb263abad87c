#include "trireme/plan/simulate/stage_cost.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"

namespace trireme::simulate {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using layout::testing::make_chain;
using layout::testing::make_free_profile;
using layout::testing::make_plan;

TEST(StageCost, SumsTheNodesOfAStage) {
  auto model = make_chain({{1, 2, 3}, {10, 20, 30}, {100, 200, 300}});
  const auto costs = stage_costs(model.graph, make_plan(model.graph, {{1}}), model.profile);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].forward_us, 1);
  EXPECT_EQ(costs[0].backward_us(), 5);
  EXPECT_EQ(costs[1].forward_us, 110);
  EXPECT_EQ(costs[1].input_us, 220);
  EXPECT_EQ(costs[1].weight_us, 330);
  EXPECT_EQ(costs[1].work_us(), 660);
}

TEST(StageCost, RecomputingRunsTheForwardAgainBeforeTheBackward) {
  auto model = make_chain({{1, 2, 3}, {10, 20, 30}, {100, 200, 300}});
  layout::Plan plan = make_plan(model.graph, {{1}});
  plan.stages[1].recompute = true;
  const auto costs = stage_costs(model.graph, plan, model.profile);
  EXPECT_EQ(costs[0].input_us, 2);
  EXPECT_EQ(costs[1].forward_us, 110);
  EXPECT_EQ(costs[1].input_us, 220 + 110);
  EXPECT_EQ(costs[1].weight_us, 330);
  // Node 2's gradient is complete after 110 of forward and 500 of the 550 of backward.
  plan.bucket_bytes = 1;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto ready = bucket_completions(model.graph, plan, map, model.profile);
  EXPECT_DOUBLE_EQ(ready[1], (110 + 500.0) / 660);
}

// Node 2 is a region by itself: its gradient does not wait for the forward of node 1.
TEST(StageCost, RegionsRunAgainOneAfterAnother) {
  auto model = make_chain({{1, 2, 3}, {10, 20, 30}, {100, 200, 300}});
  layout::Plan plan = make_plan(model.graph, {{1}});
  plan.stages[1].recompute = true;
  plan.stages[1].regions = {2};
  EXPECT_EQ(stage_costs(model.graph, plan, model.profile)[1].input_us, 220 + 110);
  plan.bucket_bytes = 1;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const auto ready = bucket_completions(model.graph, plan, map, model.profile);
  EXPECT_DOUBLE_EQ(ready[1], (100 + 500.0) / 660);
  EXPECT_DOUBLE_EQ(ready[2], 1);
}

/// Stages that offload are not.
TEST(StageCost, GrowsWhereAStageIsNotCaptured) {
  auto model = make_chain({{1, 2, 3}, {10, 20, 30}});
  model.profile.uncaptured = {.forward = 2, .backward = 3};
  model.profile.step.file = profile::FileCosts{};
  layout::Plan plan = make_plan(model.graph, {{1}});
  EXPECT_EQ(stage_costs(model.graph, plan, model.profile)[1].work_us(), 60);
  plan.stages[1].offload = true;
  const auto offloaded = stage_costs(model.graph, plan, model.profile);
  EXPECT_EQ(offloaded[0].work_us(), 6);
  EXPECT_EQ(offloaded[1].forward_us, 20);
  EXPECT_EQ(offloaded[1].input_us, 60);
  EXPECT_EQ(offloaded[1].weight_us, 90);
}

TEST(StageCost, GrowsWhereMoreThanAMicrobatchIsHeld) {
  auto model = make_chain({{1, 2, 3}, {10, 20, 30}});
  model.profile.held = {.one_bytes = 10, .held_bytes = 20, .forward = 2, .backward = 3};
  const auto costs =
      costs_while_holding(stage_costs(model.graph, make_plan(model.graph, {{1}}), model.profile),
                          model.profile, {10, 20});
  EXPECT_EQ(costs[0].forward_us, 1);
  EXPECT_EQ(costs[0].backward_us(), 5);
  EXPECT_EQ(costs[1].forward_us, 20);
  EXPECT_EQ(costs[1].input_us, 60);
  EXPECT_EQ(costs[1].weight_us, 90);
}

TEST(StageCost, MessagesAndFoldsCostByTheProfile) {
  auto model = make_chain({{1, 1, 1, 250, 1000}, {1, 1, 1, 1, 1}});
  model.profile.step.fold_ns = 1;
  model.profile.step.copy_ns_per_byte = 2;
  const auto costs = stage_costs(model.graph, make_plan(model.graph, {{1}}), model.profile);
  EXPECT_EQ(costs[0].sent_bytes, 1000);
  EXPECT_EQ(costs[0].received_bytes, 1000);
  EXPECT_EQ(costs[1].sent_bytes, 1000);
  EXPECT_EQ(costs[0].copy_us, 2);
  EXPECT_EQ(costs[0].weight_us, 1 + 1);  // A thousand folds of 1 ns.
  EXPECT_EQ(costs[0].work_us(), 1 + 1 + 2 + 2);
}

/// A rank whose stages take a field reads all of the sample, once, however many of its stages take some.
TEST(StageCost, EachRankThatTakesAFieldReadsSamples) {
  GraphBuilder b;
  const ValueId x = b.input("x", {10}), y = b.input("y", {10});
  const ValueId v = b.node("mul", {x, b.parameter("p", {10})}, b.batch({10}));
  const ValueId h = b.node("relu", {v}, b.batch({10}));
  b.loss(b.node("mul", {h, y}, b.batch({10})));
  auto profile = make_free_profile(b.graph());
  profile.step.read_us = 7;
  layout::Plan plan = make_plan(b.graph(), {{1, 2}});
  plan.stages[0].recompute = true;
  auto costs = stage_costs(b.graph(), plan, profile);
  EXPECT_EQ(costs[0].read_us, 7);
  EXPECT_EQ(costs[0].work_us(), 7) << "recomputation keeps the fields";
  EXPECT_EQ(costs[1].read_us, 0);
  EXPECT_EQ(costs[2].read_us, 7);
  plan.stages[2].position = 0;
  costs = stage_costs(b.graph(), plan, profile);
  EXPECT_EQ(costs[0].read_us, 7);
  EXPECT_EQ(costs[2].read_us, 0);
}

/// v = p * x in stage 0, used in stages 1 and 2: sent twice; its gradient comes back along 2, 1, 0.
TEST(StageCost, AValueGoesToEachConsumerAndItsGradientAlongTheChain) {
  GraphBuilder b;
  const ValueId x = b.input("x", {10});
  const ValueId v = b.node("mul", {x, b.parameter("p", {10})}, b.batch({10}));
  const ValueId h = b.node("relu", {v}, b.batch({10}));
  b.loss(b.node("mul", {h, v}, b.batch({10})));
  const auto costs =
      stage_costs(b.graph(), make_plan(b.graph(), {{1, 2}}), make_free_profile(b.graph()));
  EXPECT_EQ(costs[0].sent_bytes, 80);
  EXPECT_EQ(costs[0].received_bytes, 40);            // One gradient, from stage 1.
  EXPECT_EQ(costs[1].received_bytes, 40 + 40 + 40);  // v, its gradient from 2, that of h.
  EXPECT_EQ(costs[1].sent_bytes, 40 + 40);
  EXPECT_EQ(costs[2].received_bytes, 80);
  EXPECT_EQ(costs[2].sent_bytes, 80);
}

TEST(StageCost, CopiesCostTheStageThatRunsThem) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId mask = b.node("ne", {x}, b.batch({4}));
  const ValueId h = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
  b.loss(b.node("mul", {h, mask}, b.batch({4})));
  profile::Profile profile = make_free_profile(b.graph());
  profile.costs[0].forward_us = 7;
  layout::Plan plan = make_plan(b.graph(), {{2}});
  EXPECT_EQ(stage_costs(b.graph(), plan, profile)[1].received_bytes, 32);
  plan.stages[1].copies = {0};
  const auto costs = stage_costs(b.graph(), plan, profile);
  EXPECT_EQ(costs[1].received_bytes, 16);
  EXPECT_EQ(costs[0].forward_us, 7);
  EXPECT_EQ(costs[1].forward_us, 7);
}

// A bucket for each parameter; the backward comes to the last node first.
TEST(BucketCompletions, FollowTheBackwardFromTheLastNodeToTheFirst) {
  const auto model = make_chain({{1, 1, 2}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}});
  layout::Plan plan = make_plan(model.graph, {{2}, 2, 2});
  plan.bucket_bytes = 1;
  const auto map = layout::make_parameter_map(model.graph, plan);
  const std::vector<double> completions = bucket_completions(model.graph, plan, map, model.profile);
  ASSERT_EQ(completions.size(), 4U);
  for (std::size_t b = 0; b < completions.size(); ++b) {
    const std::string& parameter = map.buckets[b].slots[0].parameter;
    const std::map<std::string, double> expected = {
        {"p1", 4.0 / 7}, {"p0", 1}, {"p3", 2.0 / 3}, {"p2", 1}};
    EXPECT_DOUBLE_EQ(completions[b], expected.at(parameter)) << parameter;
  }
}

}  // namespace
}  // namespace trireme::simulate
