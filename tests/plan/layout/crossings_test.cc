#include "trireme/plan/layout/crossings.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using Indices = std::vector<int>;

/// x -> a -> first (weighted), metric (weighted) -> b takes a and the first loss -> second (a mean)
graph::Graph make_graph() {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId a = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
  const ValueId weight = b.node("sum", {b.input("mask", {4})}, b.fixed({}));
  const ValueId first = b.loss(a, "first");
  b.loss(a, "metric");
  const ValueId h = b.node("mul", {a, first}, b.batch({4}));
  b.loss(h, "second");
  b.graph().losses[0].weight = b.graph().losses[1].weight = weight;
  b.graph().losses[1].coefficient = 0;
  return b.graph();
}

std::vector<StageLosses> cut_at(const std::vector<int>& cuts) {
  const graph::Graph graph = make_graph();
  const Plan plan = make_manual_plan(graph, "hash", cuts, {8, 2, 2});
  return stage_losses(graph, plan, crossings(graph, plan));
}

TEST(StageLosses, OneStageHasAll) {
  const auto stages = cut_at({});
  EXPECT_EQ(stages[0].made, (Indices{0, 1, 2}));
  EXPECT_EQ(stages[0].seeded, (Indices{0, 1, 2}));
  EXPECT_EQ(stages[0].weighed, (Indices{0, 1}));
}

// The first loss is used in the last stage, whose backward takes its gradient; the metric has none.
TEST(StageLosses, WeightsAreOfWhoMakesOrSeeds) {
  const auto stages = cut_at({1, 4});
  EXPECT_EQ(stages[0].made, Indices{});
  EXPECT_EQ(stages[0].weighed, Indices{}) << "it reads no mask";
  EXPECT_EQ(stages[1].made, (Indices{0, 1}));
  EXPECT_EQ(stages[1].seeded, Indices{1});
  EXPECT_EQ(stages[1].weighed, (Indices{0, 1}));
  EXPECT_EQ(stages[2].made, Indices{2});
  EXPECT_EQ(stages[2].seeded, (Indices{0, 2}));
  EXPECT_EQ(stages[2].weighed, Indices{0});
}

}  // namespace
}  // namespace trireme::layout
