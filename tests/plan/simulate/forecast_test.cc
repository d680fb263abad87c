#include "trireme/plan/simulate/forecast.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

/// Two stages of a chain whose first has twice the work, `m` microbatches for each of two replicas.
Forecast forecast_of(const std::vector<int>& placement, int replicas, int m,
                     const std::string& schedule = "interleaved") {
  const auto model = make_chain({{2, 2, 2, 4, 3}, {1, 1, 1, 4, 5}, {0, 0, 0, 1, 1}});
  layout::Plan plan =
      make_plan(model.graph,
                {.cuts = {1}, .num_microbatches = m, .replicas = replicas, .schedule = schedule});
  plan.roles[0].placement = placement;
  const auto map = layout::make_parameter_map(model.graph, plan);
  return forecast({model.graph, plan, map, model.profile, make_topology(4)},
                  {.plays_alike_once = true});
}

// Both ranks of the first stage give the second as much as it can do: it waits for the first forward alone, and they for the
// last backward.
TEST(RanksOfSeveralReplicas, ARankDoesTheWorkOfAll) {
  const Forecast even = forecast_of({0, 1, 2, 3}, 2, 8);
  const Forecast uneven = forecast_of({0, 1, 2, 2}, 2, 8);
  ASSERT_EQ(uneven.simulation.busy_us.size(), 3U);
  EXPECT_EQ(uneven.simulation.busy_us, (std::vector<double>{8 * 6, 8 * 6, 2 * 8 * 3}));
  EXPECT_EQ(even.simulation.busy_us, (std::vector<double>{8 * 6, 8 * 6, 8 * 3, 8 * 3}));
  EXPECT_GE(uneven.simulation.step_us, even.simulation.step_us);
  EXPECT_LE(uneven.simulation.step_us, even.simulation.step_us + 6);
  EXPECT_GE(uneven.simulation.step_us, uneven.plan_bound_us);
  EXPECT_EQ(forecast_of({0, 0, 1, 2}, 2, 8).plan_bound_us, 2 * 8 * 6);
}

// Two replicas on the same ranks are one that runs as many microbatches.
TEST(RanksOfSeveralReplicas, SideBySideTakesAsLongAsOneAfterTheOther) {
  for (const char* schedule : {"simple", "interleaved", "zero_bubble"}) {
    const Forecast beside = forecast_of({0, 0, 1, 1}, 2, 4, schedule);
    const Forecast behind = forecast_of({0, 1}, 1, 8, schedule);
    EXPECT_EQ(beside.simulation.busy_us, behind.simulation.busy_us);
    EXPECT_GE(beside.simulation.step_us, behind.plan_bound_us);
    EXPECT_LE(beside.simulation.step_us, behind.simulation.step_us + 6) << schedule;
  }
}

TEST(RanksOfSeveralReplicas, HoldValuesOnceAndActivationsOfEach) {
  const Forecast even = forecast_of({0, 1, 2, 3}, 2, 4);
  const Forecast uneven = forecast_of({0, 1, 2, 2}, 2, 4);
  const RankMemory &one = even.memory[2], &both = uneven.memory[2];
  EXPECT_EQ(uneven.memory[0], even.memory[0]);
  EXPECT_EQ(both.parameters, one.parameters);
  EXPECT_EQ(both.optimizer, one.optimizer);
  EXPECT_EQ(both.gradients, 2 * one.gradients);
  EXPECT_EQ(both.activations, 2 * one.activations);
  EXPECT_GT(both.messages, one.messages);
  EXPECT_LE(both.messages, 2 * one.messages + one.transient);
}

}  // namespace
}  // namespace trireme::simulate
