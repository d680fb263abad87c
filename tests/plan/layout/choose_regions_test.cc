#include "trireme/plan/layout/choose_regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using Indices = std::vector<int>;

/// A chain of nodes, each with a parameter, that make so many elements a sample; then a loss.
graph::Graph chain(const std::vector<int>& widths) {
  GraphBuilder b;
  ValueId x = b.input("x", {1});
  for (std::size_t i = 0; i < widths.size(); ++i) {
    x = b.node("mul", {x, b.parameter("p" + std::to_string(i), {1})}, b.batch({widths[i]}));
  }
  b.loss(x);
  return b.graph();
}

Plan whole(const graph::Graph& graph) { return make_manual_plan(graph, "hash", {}, {8, 2, 2}); }

// Blocks of three nodes whose results are narrow.
TEST(EvenRegions, BeginWhereLittleCrosses) {
  const graph::Graph graph = chain({90, 90, 1, 90, 90, 1, 90, 90, 1, 90, 90, 1});
  const Plan plan = whole(graph);
  EXPECT_EQ(even_regions(graph, plan, 0, 1), Indices{});
  EXPECT_EQ(even_regions(graph, plan, 0, 2), Indices{6});
  EXPECT_EQ(even_regions(graph, plan, 0, 4), (Indices{3, 6, 9}));
}

TEST(EvenRegions, AreOfTheStage) {
  const graph::Graph graph = chain({90, 90, 1, 90, 90, 1, 90, 90, 1, 90, 90, 1});
  const Plan plan = make_manual_plan(graph, "hash", Indices{6}, {8, 2, 2});
  EXPECT_EQ(even_regions(graph, plan, 0, 2), Indices{3});
  EXPECT_EQ(even_regions(graph, plan, 1, 2), Indices{9});
}

// Node 2 transposes the weight of node 3: a region from there on would be handed the weight.
TEST(EvenRegions, DoNotPartAWeightFromItsUse) {
  GraphBuilder b;
  ValueId x = b.node("mul", {b.input("x", {1}), b.parameter("p", {1})}, b.batch({100}));
  x = b.node("relu", {x}, b.batch({100}));
  const ValueId weight = b.parameter("w", {500, 100});
  const ValueId turned = b.node("t", {weight}, b.fixed({100, 500}), {.view_of = weight});
  x = b.node("mm", {x, turned}, b.batch({100}));
  b.loss(b.node("relu", {x}, b.batch({100})));
  EXPECT_EQ(even_regions(b.graph(), whole(b.graph()), 0, 2), Indices{2});
}

TEST(EvenRegions, AreFewerWhereTheStageHasFewCuts) {
  const graph::Graph graph = chain({5, 5});
  EXPECT_EQ(even_regions(graph, whole(graph), 0, 9).size(), 2U);
}

TEST(EvenRegions, BeginAtAllowedCutsInOrderWhateverTheGraph) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    GraphBuilder b;
    std::vector<ValueId> values = {b.input("x", {3})};
    for (int n = 0; n < 12; ++n) {
      const ValueId one = values[random() % values.size()],
                    other = values[random() % values.size()];
      const auto width = static_cast<std::int64_t>(random() % 40 + 1);
      values.push_back(
          random() % 4 == 0 && values.size() > 1
              ? b.node("view", {values.back()}, b.batch({width}), {.view_of = values.back()})
              : b.node("add", {one, other}, b.batch({width})));
      if (random() % 5 == 0) b.write("relu_", {values.back()});
    }
    b.loss(values.back());
    const std::vector<bool> allowed = graph::allowed_cuts(b.graph());
    const Plan plan = whole(b.graph());
    for (int num = 1; num < 6; ++num) {
      const Indices begins = even_regions(b.graph(), plan, 0, num);
      EXPECT_LT(begins.size(), static_cast<std::size_t>(num));
      EXPECT_TRUE(std::ranges::is_sorted(begins, std::ranges::less_equal())) << trial;
      for (const int begin : begins) EXPECT_TRUE(allowed[begin]) << trial;
    }
  }
}

// 36 equal nodes: with r regions the last has r - 1 tensors before it and makes 36 / r. Five are as good as six, the root.
TEST(SetRegions, BalancesWhatIsKeptAndTheLargestRegion) {
  const graph::Graph graph = chain(Indices(36, 20));
  Plan plan = whole(graph);
  set_regions(graph, plan, 0);
  EXPECT_EQ(plan.stages[0].regions, (Indices{7, 14, 22, 29}));
}

// One that crosses every cut is kept once.
TEST(SetRegions, ALongWayCountsOnce) {
  GraphBuilder b;
  ValueId x = b.node("mul", {b.input("x", {1}), b.parameter("p", {1})}, b.batch({1000}));
  const ValueId first = x;
  for (int i = 0; i < 36; ++i) x = b.node("add", {x, first}, b.batch({20}));
  b.loss(x);
  Plan plan = whole(b.graph());
  set_regions(b.graph(), plan, 0);
  EXPECT_GE(plan.stages[0].regions.size(), 5U);
}

TEST(SetRegions, AStageThatGainsNothingStaysWhole) {
  const graph::Graph graph = chain({20, 20});
  Plan plan = whole(graph);
  set_regions(graph, plan, 0);
  EXPECT_EQ(plan.stages[0].regions, Indices{});
}

}  // namespace
}  // namespace trireme::layout
