#include "trireme/plan/simulate/forecast.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;
using layout::testing::make_topology;

double bound(const layout::testing::PlanShape& shape, const topology::Topology& topology) {
  const auto model = make_chain({{1, 1, 1}, {2, 2, 2}, {1, 0, 0}});
  const layout::Plan plan = make_plan(model.graph, shape);
  return plan_bound_us(stage_costs(model.graph, plan, model.profile), plan, topology,
                       layout::crossings(model.graph, plan));
}

TEST(Bounds, TheStageThatIsBusyLongest) {
  EXPECT_EQ(bound({{1, 2}, 4}, make_topology(3)), 3 + 4 * 6);
  EXPECT_EQ(bound({{1, 2}, 1}, make_topology(3)), 3 + 6 + 1);  // One through everything.
  EXPECT_EQ(bound({{}, 4}, make_topology(1)), 4 * 10);
}

TEST(Bounds, SharedCoresDoAllTheWork) {
  EXPECT_EQ(bound({{1, 2}, 4}, make_topology(3, 1)), 4 * 10);
  EXPECT_EQ(bound({{1, 2}, 4}, make_topology(3, 2)), 3 + 4 * 6);
  EXPECT_EQ(bound({{1, 2}, 4, 2}, make_topology(6, 2)), 2 * 4 * 10 / 2);
}

TEST(Bounds, OfAnyPlan) {
  EXPECT_EQ(any_plan_bound_us(10, 10, 8, 4), 20);
  EXPECT_EQ(any_plan_bound_us(10, 10, 2, 4), 10);
}

/// Two branches of one input that meet at the end: a stage for each runs beside the other.
TEST(Bounds, BranchesRunBesideEachOther) {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {1});
  const graph::ValueId left = b.node("mul", {x, b.parameter("l", {1})}, b.batch({1}));
  const graph::ValueId right = b.node("mul", {x, b.parameter("r", {1})}, b.batch({1}));
  b.loss(b.node("add", {left, right}, b.batch({1})));
  profile::Profile profile = layout::testing::make_free_profile(b.graph());
  for (int node = 0; node < 2; ++node) profile.costs[node].forward_us = 10;
  const layout::Plan plan = make_plan(b.graph(), {{1, 2}, 1});
  const auto map = layout::make_parameter_map(b.graph(), plan);
  const Forecast forecast =
      simulate::forecast({b.graph(), plan, map, profile, make_topology(3)}, {});
  EXPECT_EQ(forecast.simulation.step_us, 10);
  EXPECT_EQ(forecast.plan_bound_us, 10);
  EXPECT_EQ(forecast.any_bound_us, 10);
}

}  // namespace
}  // namespace trireme::simulate
