#include "trireme/plan/simulate/stage_tensors.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/simulate/gradient_rules.h"

namespace trireme::simulate {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using layout::testing::make_chain;
using layout::testing::make_free_profile;
using layout::testing::make_plan;

/// Outputs of 40, 80 and 120 bytes and a loss of 4; parameters of 4 bytes; nodes 1 and 2
/// save their input.
layout::testing::Model three_nodes() {
  return make_chain({{1, 1, 1, 10}, {1, 1, 1, 20}, {1, 1, 1, 30}});
}

TEST(StageTensors, OneStage) {
  const auto model = three_nodes();
  const auto tensors = stage_tensors(model.graph, make_plan(model.graph, {}), model.profile);
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].kept, 40 + 80);
  EXPECT_EQ(tensors[0].forward_peak, 40 + 80 + 120 + 4);
  // At node 2: what nodes 1 and 2 saved, the gradients of output, input and parameter.
  EXPECT_EQ(tensors[0].backward_peak, 40 + 80 + 120 + 80 + 4);
}

TEST(StageTensors, AStageHoldsWhatItSendsAndWhatItReceived) {
  const auto model = three_nodes();
  const auto tensors = stage_tensors(model.graph, make_plan(model.graph, {{2}}), model.profile);
  EXPECT_EQ(tensors[0].kept, 40 + 80);
  EXPECT_EQ(tensors[0].forward_peak, 40 + 80);
  // At node 1: its input, the gradients of output, input and parameter; its output is gone.
  EXPECT_EQ(tensors[0].backward_peak, 40 + 80 + 40 + 4);
  EXPECT_EQ(tensors[1].kept, 80);
  EXPECT_EQ(tensors[1].forward_peak, 80 + 120 + 4);
  EXPECT_EQ(tensors[1].backward_peak, 80 + 120 + 80 + 4);
}

TEST(StageTensors, FieldsOfTheBatchCountWhereTheyAreSaved) {
  auto model = three_nodes();
  model.profile.costs[0].saved_inputs = {0};
  const auto tensors = stage_tensors(model.graph, make_plan(model.graph, {{2}}), model.profile);
  EXPECT_EQ(tensors[0].kept, 40 + 80 + 4);
  EXPECT_EQ(tensors[1].kept, 80);
}

TEST(StageTensors, WhatNodesKeepAndWorkWithCounts) {
  auto model = three_nodes();
  model.profile.costs[1].kept_bytes = 1000;
  model.profile.costs[0].forward_workspace_bytes = 5000;
  model.profile.costs[0].backward_workspace_bytes = 7000;
  const auto tensors = stage_tensors(model.graph, make_plan(model.graph, {}), model.profile);
  EXPECT_EQ(tensors[0].kept, 40 + 80 + 1000);
  EXPECT_EQ(tensors[0].forward_peak, 40 + 5000);
  EXPECT_EQ(tensors[0].backward_peak, 40 + 4 + 7000);  // Node 1 is done by then.
}

/// Stage 1: y = mm(x, w), z = tanh(y), loss = mul(z, p). What y's gradient of w needs stays, x and the gradient of y;
/// what tanh saved goes as it runs; the gradient of p is made in the first part and waits.
TEST(StageTensors, ABackwardInTwoPartsKeepsWhatWaits) {
  GraphBuilder b;
  const ValueId x = b.node("mul", {b.input("x", {10}), b.parameter("q", {10})}, b.batch({10}));
  const ValueId y = b.node("mm", {x, b.parameter("w", {10, 20})}, b.batch({20}));
  const ValueId z = b.node("tanh", {y}, b.batch({20}));
  b.loss(b.node("mul", {z, b.parameter("p", {20})}, b.batch({20})));
  profile::Profile profile = make_free_profile(b.graph());
  profile.costs[1].saved_inputs = {0};
  profile.costs[2].saved_outputs = {0};
  profile.costs[3].saved_inputs = {0};
  const auto tensors = stage_tensors(b.graph(), make_plan(b.graph(), {{1}}), profile);
  constexpr std::int64_t kX = 40, kY = 80, kP = 80, kW = 800;
  EXPECT_EQ(tensors[1].kept, kX + kY);
  EXPECT_EQ(tensors[1].waiting, kX + kY + kP);
  EXPECT_EQ(tensors[1].weight_peak, kX + kY + kP + kW);
  // At tanh: x, z, the gradients of z, y and p. At mm: x, gradients of y, p and x.
  EXPECT_EQ(tensors[1].input_peak, kX + 3 * kY + kP);
  // Nobody waits for a first stage: all of it is done in the second part, with the gradient that it got.
  EXPECT_EQ(tensors[0].waiting, tensors[0].kept + kX);
  EXPECT_EQ(tensors[0].weight_peak, tensors[0].backward_peak);
}

/// Stage 1 receives x and sends it on, through tanh, beside a = mul(field, p), b = mul(a, q): these lead to no received value.
/// All that they need waits, with the gradient that b got; nothing of theirs passes in the first part.
TEST(StageTensors, WhatLeadsToNoReceivedValueWaitsWhole) {
  GraphBuilder b;
  const ValueId field = b.input("x", {10});
  const ValueId x = b.node("mul", {field, b.parameter("o", {10})}, b.batch({10}));
  const ValueId y = b.node("tanh", {x}, b.batch({10}));
  const ValueId a = b.node("mul", {field, b.parameter("p", {50})}, b.batch({50}));
  const ValueId made = b.node("mul", {a, b.parameter("q", {50})}, b.batch({50}));
  b.loss(b.node("add", {y, made}, b.batch({50})));
  profile::Profile profile = make_free_profile(b.graph());
  profile.costs[1].saved_outputs = {0};
  profile.costs[3].saved_inputs = {0};  // a
  const auto tensors = stage_tensors(b.graph(), make_plan(b.graph(), {{1, 4}}), profile)[1];
  constexpr std::int64_t kX = 40, kA = 200, kQ = 200;
  EXPECT_EQ(tensors.kept, 2 * kX + kA + kA) << "x, y, a, and the sum that is sent";
  // At tanh: x and y, the gradient of y that was received and the one of x; a, and the gradient of `made`.
  EXPECT_EQ(tensors.input_peak, 4 * kX + 2 * kA);
  EXPECT_EQ(tensors.waiting, 2 * kA);
  // At the second mul: the gradients of a and of q.
  EXPECT_EQ(tensors.weight_peak, tensors.waiting + kA + kQ);
}

/// Stage 1 adds tanh(x), of what it received, to mm(field, a view of w), which leads to nothing received: the sum's backward
/// brings mm's along into the first part, and the gradient of w, made there, waits.
StageTensors with_view_of_weight(const char* view, std::int64_t rows) {
  GraphBuilder b;
  const ValueId field = b.input("x", {10});
  const ValueId x = b.node("mul", {field, b.parameter("o", {10})}, b.batch({10}));
  const ValueId y = b.node("tanh", {x}, b.batch({10}));
  const ValueId w = b.parameter("w", {rows, 10});
  const ValueId part = b.node(view, {w}, b.fixed({10, 10}), {.view_of = w});
  const ValueId product = b.node("mm", {field, part}, b.batch({10}));
  b.loss(b.node("add", {y, product}, b.batch({10})));
  return stage_tensors(b.graph(), make_plan(b.graph(), {{1}}), make_free_profile(b.graph()))[1];
}

TEST(StageTensors, TheGradientOfATransposedWeightWaitsWhereItsProductDoesNot) {
  const StageTensors tensors = with_view_of_weight("t", 10);
  constexpr std::int64_t kX = 40, kW = 400;
  EXPECT_EQ(tensors.waiting, kW);
  EXPECT_EQ(tensors.weight_peak, kW);
  // At mm: x, which was received, the gradients of y, of the product and of w.
  EXPECT_EQ(tensors.input_peak, 3 * kX + kW);
}

/// The gradient of all rows is memory of its own.
TEST(StageTensors, TheGradientOfAWeightWhosePartIsUsedWaitsWhole) {
  const StageTensors tensors = with_view_of_weight("slice", 20);
  constexpr std::int64_t kX = 40, kPart = 400, kW = 800;
  EXPECT_EQ(tensors.waiting, kW);
  // At slice: x, which was received, the gradients of y, of the part and of w.
  EXPECT_EQ(tensors.input_peak, 2 * kX + kPart + kW);
}

// Stage 1 of three_nodes receives 80 bytes and saves them; its forward takes 80 + 120 + 4.
TEST(StageTensors, AStageThatRecomputesKeepsWhatItReceived) {
  const auto model = three_nodes();
  layout::Plan plan = make_plan(model.graph, {{1}});
  const StageTensors kept = stage_tensors(model.graph, plan, model.profile)[1];
  plan.stages[1].recompute = true;
  const StageTensors tensors = stage_tensors(model.graph, plan, model.profile)[1];
  EXPECT_EQ(kept.kept, 40 + 80);
  EXPECT_EQ(tensors.kept, 40);
  EXPECT_EQ(tensors.forward_peak, kept.forward_peak);
  EXPECT_EQ(tensors.backward_peak, std::max(kept.backward_peak, kept.forward_peak));
}

// Region 0 of nodes 0 and 1 hands 80 bytes on to region 1, which saves them; x has 4.
TEST(StageTensors, ARegionIsHeldAtATime) {
  const auto model = three_nodes();
  layout::Plan plan = make_plan(model.graph, {});
  plan.stages[0].recompute = true;
  plan.stages[0].regions = {2};
  const StageTensors tensors = stage_tensors(model.graph, plan, model.profile)[0];
  EXPECT_EQ(tensors.kept, 4 + 80);
  EXPECT_EQ(tensors.forward_peak, 80 + 120 + 4);
  // In region 1: what it received, the gradients of output, input and parameter; beside it x.
  EXPECT_EQ(tensors.backward_peak, 80 + 120 + 80 + 4 + 4);
}

// Regions of a node each: a = mul(x, p), b = relu(a), c = mul(b, a). The first region makes a for both others, and gets one
// gradient of it, which comes through both.
TEST(StageTensors, WhatSeveralRegionsTakeIsKeptOnce) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {10});
  const ValueId a = builder.node("mul", {x, builder.parameter("p", {10})}, builder.batch({10}));
  const ValueId b = builder.node("relu", {a}, builder.batch({20}));
  builder.loss(builder.node("mul", {b, a}, builder.batch({10})));
  layout::Plan plan = make_plan(builder.graph(), {});
  plan.stages[0].recompute = true;
  plan.stages[0].regions = {1, 2};
  const StageTensors tensors =
      stage_tensors(builder.graph(), plan, make_free_profile(builder.graph()))[0];
  constexpr std::int64_t kX = 40, kA = 40, kB = 80, kC = 40, kLoss = 4;
  EXPECT_EQ(tensors.kept, kX + kA + kB);
  EXPECT_EQ(tensors.forward_peak, kA + kB + kC + kLoss);
  // In the last: a, b, the gradients of all three; beside it x.
  EXPECT_EQ(tensors.backward_peak, 2 * (kA + kB) + kC + kX);
  EXPECT_EQ(tensors.waiting, 2 * kA + 0) << "the first region waits whole, with the gradient of a";
}

// Region 1 takes nothing of region 0; the gradient of a, from region 2, waits meanwhile.
TEST(StageTensors, AGradientWaitsForTheRegionThatMakesItsValue) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {10}), y = builder.input("y", {50});
  const ValueId a = builder.node("mul", {x, builder.parameter("p", {10})}, builder.batch({10}));
  const ValueId b = builder.node("mul", {y, builder.parameter("q", {50})}, builder.batch({50}));
  builder.loss(builder.node("mul", {b, a}, builder.batch({10})));
  profile::Profile profile = make_free_profile(builder.graph());
  profile.costs[1].backward_workspace_bytes = 1000;
  layout::Plan plan = make_plan(builder.graph(), {});
  plan.stages[0].recompute = true;
  plan.stages[0].regions = {1, 2};
  constexpr std::int64_t kX = 40, kA = 40, kB = 200, kQ = 200;
  EXPECT_EQ(stage_tensors(builder.graph(), plan, profile)[0].backward_peak,
            kB + kQ + 1000 + kA + kX + kB)
      << "gradients of b, q and a, workspace, fields";
}

/// A view is the memory of what it views, and its gradient the memory of its own.
TEST(StageTensors, ViewsTakeNothing) {
  GraphBuilder b;
  const ValueId x = b.input("x", {10});
  const ValueId h = b.node("mul", {x, b.parameter("p", {10})}, b.batch({10}));
  const ValueId v = b.node("view", {h}, b.batch({10}), {.view_of = h});
  const ValueId y = b.node("relu", {v}, b.batch({10}));
  b.loss(y);
  profile::Profile profile = make_free_profile(b.graph());
  profile.costs[2].saved_outputs = {0};
  profile.costs[1].saved_inputs = {0};
  EXPECT_TRUE(hands_on_gradient(b.graph(), b.graph().nodes[1], h));
  EXPECT_FALSE(hands_on_gradient(b.graph(), b.graph().nodes[2], v));
  const auto tensors = stage_tensors(b.graph(), make_plan(b.graph(), {}), profile);
  EXPECT_EQ(tensors[0].kept, 80);
  EXPECT_EQ(tensors[0].forward_peak, 84);
  EXPECT_EQ(tensors[0].backward_peak, 80 + 40 + 40);  // At relu: gradients of y and v.
}

/// y = mm(x, w transposed): the gradient of w is the memory of the gradient of the transposed one.
TEST(StageTensors, TheGradientOfATransposedWeightCountsOnce) {
  GraphBuilder b;
  const ValueId w = b.parameter("w", {20, 10});
  const ValueId transposed = b.node("t", {w}, b.fixed({10, 20}), {.view_of = w});
  const ValueId y = b.node("mm", {b.input("x", {10}), transposed}, b.batch({20}));
  b.loss(y);
  const profile::Profile profile = make_free_profile(b.graph());
  const auto tensors = stage_tensors(b.graph(), make_plan(b.graph(), {}), profile);
  EXPECT_EQ(tensors[0].backward_peak, 80 + 800);  // The gradients of y and w.
}

/// Two uses of a value: the later one's gradient waits for the earlier one's.
TEST(StageTensors, GradientsOfAValueAreAddedUp) {
  GraphBuilder b;
  const ValueId x = b.input("x", {10});
  const ValueId h = b.node("mul", {x, b.parameter("p", {10})}, b.batch({10}));
  const ValueId a = b.node("relu", {h}, b.batch({10}));
  b.loss(b.node("mul", {a, h}, b.batch({10})));
  const profile::Profile profile = make_free_profile(b.graph());
  const auto tensors = stage_tensors(b.graph(), make_plan(b.graph(), {}), profile);
  // At mul(a, h): gradients of output, a and h. At relu: of a, and of h twice.
  EXPECT_EQ(tensors[0].backward_peak, 3 * 40);
}

TEST(StageTensors, MaskedValuesWithoutGradientGoWhenNobodyKeepsThem) {
  GraphBuilder b;
  const ValueId x = b.input("x", {10});
  const ValueId mask = b.node("ne", {x}, b.batch({10}));
  ValueId h = b.node("mul", {x, b.parameter("p", {10})}, b.batch({10}));
  h = b.node("mul", {h, mask}, b.batch({10}));
  b.loss(b.node("relu", {h}, b.batch({10})));
  profile::Profile profile = make_free_profile(b.graph());
  const layout::Plan plan = make_plan(b.graph(), {{2}});
  EXPECT_EQ(stage_tensors(b.graph(), plan, profile)[1].kept, 40);  // The other input, a leaf.
  profile.costs[2].saved_inputs = {1};
  EXPECT_EQ(stage_tensors(b.graph(), plan, profile)[1].kept, 80);
}

}  // namespace
}  // namespace trireme::simulate
