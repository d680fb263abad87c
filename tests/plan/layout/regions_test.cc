#include "trireme/plan/layout/regions.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using Indices = std::vector<int>;

/// 0 mask = ne(x), 1 twice = not(mask), 2 a = mul(x, p) | 3 b = mul(a, p) / 4 c = mul(b, mask) / 5 d = mul(c, twice),
/// 6 loss: stage 1 copies both masks, and has three regions.
struct Masks {
  Masks() {
    const ValueId x = b.input("x", {4});
    mask = b.node("ne", {x}, b.batch({4}));
    const graph::NodeId first = b.last_node();
    twice = b.node("logical_not", {mask}, b.batch({4}));
    const graph::NodeId second = b.last_node();
    const ValueId a = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
    made = b.node("mul", {a, b.parameter("q", {4})}, b.batch({4}));
    const ValueId c = b.node("mul", {made, mask}, b.batch({4}));
    b.loss(b.node("mul", {c, twice}, b.batch({4})));
    plan = make_manual_plan(b.graph(), "hash", std::array{3}, {8, 2, 2});
    plan.stages[1].copies = {first, second};
    plan.stages[1].recompute = true;
    plan.stages[1].regions = {4, 5};
    plan.tie_owners = {{"p", 0}};
  }
  GraphBuilder b;
  ValueId mask, twice, made;
  Plan plan;
};

TEST(Regions, AreStagesOfTheirOwnWithTheCopiesThatTheyNeed) {
  const Masks masks;
  const RegionPlan regions = regions_as_stages(masks.b.graph(), masks.plan);
  EXPECT_EQ(regions.firsts, (Indices{0, 1, 4}));
  EXPECT_EQ(regions.begin(1), 1);
  EXPECT_EQ(regions.end(1), 4);
  EXPECT_TRUE(regions.plan.tie_owners.empty());
  for (int r = regions.begin(1); r < regions.end(1); ++r) {
    EXPECT_FALSE(regions.plan.stages[r].recompute);
    EXPECT_EQ(position_of(regions.plan, r), 1);
  }
  EXPECT_EQ(region_positions(masks.b.graph(), masks.plan),
            (std::vector<std::vector<Indices>>{{{0, 1, 2}}, {{3}, {0, 4}, {0, 1, 5, 6}}}));
}

TEST(Regions, WhatCrossesThemCrossesStages) {
  const Masks masks;
  const RegionPlan regions = regions_as_stages(masks.b.graph(), masks.plan);
  const auto all = crossings(masks.b.graph(), regions.plan);
  ASSERT_EQ(all.size(), 3U) << "a, b, c; each region makes its masks";
  EXPECT_EQ(all[1].value, masks.made);
  EXPECT_EQ(all[1].stages, (Indices{1, 2}));
}

TEST(Regions, AStageWithoutIsOneWithAllItsCopies) {
  Masks masks;
  masks.plan.stages[1].regions.clear();
  EXPECT_EQ(region_positions(masks.b.graph(), masks.plan)[1],
            (std::vector<Indices>{{0, 1, 3, 4, 5, 6}}));
}

}  // namespace
}  // namespace trireme::layout
