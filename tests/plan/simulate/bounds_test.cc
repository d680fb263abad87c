#include "trireme/plan/simulate/bounds.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;
using layout::testing::make_topology;

double bound(const layout::testing::PlanShape& shape, const topology::Topology& topology) {
  const auto model = make_chain({{1, 1, 1}, {2, 2, 2}, {1, 0, 0}});
  const layout::Plan plan = make_plan(model.graph, shape);
  return plan_bound_us(stage_costs(model.graph, plan, model.profile), plan, topology);
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
  EXPECT_EQ(any_plan_bound_us(10, 8, 4), 20);
  EXPECT_EQ(any_plan_bound_us(10, 2, 4), 10);
}

}  // namespace
}  // namespace trireme::simulate
