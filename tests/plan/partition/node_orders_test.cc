#include "trireme/plan/partition/node_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/graphs/graph_builder.h"
#include "tests/plan/partition/all_orders.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/stage_copies.h"

namespace trireme::partition {
namespace {

using layout::testing::Model;
using ::testing::HasSubstr;

/// A long tower and a short one that is as much work in one node; their sum. As recorded a cut into halves has to leave the
/// heavy node behind all of the long tower.
Model uneven_towers() {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {8});
  const graph::ValueId heavy = b.node("mul", {x, b.parameter("heavy", {1})}, b.batch({8}));  // 0
  graph::ValueId long_end = x;
  for (int layer = 0; layer < 4; ++layer) {
    const graph::ValueId w = b.parameter("w" + std::to_string(layer), {1});
    long_end = b.node("mul", {long_end, w}, b.batch({8}));  // 1 to 4
  }
  b.loss(b.node("add", {heavy, long_end}, b.batch({8})));  // 5, 6
  Model model{b.graph(), layout::testing::make_free_profile(b.graph())};
  constexpr double kWork[] = {60, 10, 10, 10, 10, 0, 20};
  for (int n = 0; n < 7; ++n) {
    model.profile.costs[n].forward_us = model.profile.costs[n].input_us = kWork[n];
  }
  model.profile.links = {{profile::LinkKind::kHost, {{0, 1, 1}, {1'000'000, 1, 1}}}};
  return model;
}

layout::Plan plan_of(const Model& model, int num_ranks, bool may_reorder) {
  const PartitionOptions options{
      .batch = {32, 1, 1}, .may_copy = false, .may_reorder = may_reorder};
  return partition(model.graph, model.profile, layout::testing::make_topology(num_ranks), options);
}

/// Three stages: as recorded 60 | 10 10 10 10 | 20 with a slowest one of 60; no order is better. Two stages: 60 | 60. Where
/// the long tower comes first, the halves are as good, so nothing is to be gained.
TEST(NodeOrders, TheRecordedOneStaysWhereNoOtherIsBetter) {
  const Model model = uneven_towers();
  for (const int num_ranks : {2, 3}) {
    EXPECT_TRUE(plan_of(model, num_ranks, true).node_order.empty()) << num_ranks;
  }
}

/// The heavy node in the middle of the long tower: 10 10 60 10 10 | 20 is 100 at least; the short tower elsewhere is better.
TEST(NodeOrders, ABetterOneIsFoundAndCheckedAgainstTheGraph) {
  Model model = uneven_towers();
  std::rotate(model.graph.nodes.begin(), model.graph.nodes.begin() + 1,
              model.graph.nodes.begin() + 3);  // 1 2 0 3 4 5 6
  std::rotate(model.profile.costs.begin(), model.profile.costs.begin() + 1,
              model.profile.costs.begin() + 3);
  for (int n = 0; n < 7; ++n) {  // Ids ascend in a recording.
    const graph::NodeId old = model.graph.nodes[n].id;
    for (graph::Value& value : model.graph.values) {
      if (value.source == graph::ValueSource::kNode && value.producer == old) {
        value.producer = 100 + n;
      }
    }
    model.graph.nodes[n].id = 100 + n;
  }
  model.profile.graph_sha256 = graph::graph_sha256(model.graph);
  const layout::Plan recorded = plan_of(model, 2, false), plan = plan_of(model, 2, true);
  ASSERT_FALSE(plan.node_order.empty());
  EXPECT_LT(plan.prediction->step_ms, 0.9 * recorded.prediction->step_ms);
  layout::check(plan, plan.graph_sha256, layout::planned_graph(model.graph, plan));
}

/// Branches of all kinds: another order is taken where it is better, never where it is worse.
TEST(NodeOrders, NeverGiveASlowerPlan) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_better = 0;
  for (int round = 0; round < 15; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 14);
    if (!testing::has_plans(one)) continue;
    const auto step_ms = [&](bool may_reorder) {
      one.options.may_reorder = may_reorder;
      const layout::Plan plan =
          partition(one.model.graph, one.model.profile, one.topology, one.options);
      layout::check(plan, plan.graph_sha256, layout::planned_graph(one.model.graph, plan));
      return plan.prediction->step_ms;
    };
    const double recorded = step_ms(false), any = step_ms(true);
    EXPECT_LE(any, recorded * (1 + 1e-9)) << "round " << round;
    num_better += any < 0.999 * recorded ? 1 : 0;
  }
  EXPECT_GT(num_better, 0);
}

/// The best of all sets of nodes that stages can be: many more problems are in ManyBranches, which is slow.
TEST(NodeOrders, ComeCloseToTheBestOfAll) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps recorded, plans;
  testing::add_orders(random, 9, 3, 40, recorded, plans);
  EXPECT_LE(plans.mean(), 0.005);
  EXPECT_GT(recorded.mean(), 0.005);
}

/// Branches in which a quarter of the nodes cost nothing, so that copies of them pay.
testing::SearchCase random_case_with_copies(std::mt19937& random) {
  testing::SearchCase one = testing::random_search_case(random, 14);
  one.model = layout::testing::random_model(random, 14);
  for (profile::NodeCost& cost : one.model.profile.costs) {
    if (random() % 4 == 0) cost.forward_us = cost.input_us = cost.weight_us = 0;
  }
  one.options.may_reorder = one.options.may_copy = true;
  return one;
}

/// Copies that are asked for, and those that the planner finds beside an order: an order that copies do not allow is refused
/// by planned_graph.
TEST(NodeOrders, AreTakenWhereCopiesAllowThem) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_both = 0;
  for (int round = 0; round < 60; ++round) {
    testing::SearchCase one = random_case_with_copies(random);
    if (!testing::has_plans(one)) continue;
    if (round % 2 == 0) {
      std::vector<graph::NodeId> copied;
      for (const graph::Node& node : one.model.graph.nodes) {
        if (random() % 4 == 0 && can_copy(one.model.graph, {node.id})) copied.push_back(node.id);
      }
      if (!can_copy(one.model.graph, copied)) continue;
      one.options.copied_nodes = copied;
    }
    try {
      const layout::Plan plan =
          partition(one.model.graph, one.model.profile, one.topology, one.options);
      layout::check(plan, plan.graph_sha256, layout::planned_graph(one.model.graph, plan));
      num_both += !plan.node_order.empty() && !plan.copied_nodes.empty() ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_THAT(error.message(), HasSubstr("too few cuts")) << "round " << round;
    }
  }
  EXPECT_GT(num_both, 0);
}

}  // namespace
}  // namespace trireme::partition
