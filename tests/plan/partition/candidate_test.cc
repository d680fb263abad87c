#include "trireme/plan/partition/candidate.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using graph::ValueId;

/// Two stages that share `t`; another parameter of that size is in the stage `heavy`.
graph::Graph make_tied(int heavy) {
  graph::testing::GraphBuilder b;
  const ValueId x = b.input("x", {1});
  const ValueId t = b.parameter("t", {1000}), p = b.parameter("p", {1000});
  ValueId h = b.node("mul", heavy == 0 ? std::vector{x, t, p} : std::vector{x, t}, b.batch({1}));
  h = b.node("mul", heavy == 1 ? std::vector{h, t, p} : std::vector{h, t}, b.batch({1}));
  b.loss(h);
  return b.graph();
}

std::vector<layout::TieOwner> owners(const graph::Graph& graph, Objective objective) {
  const layout::Plan plan =
      partition(graph, layout::testing::make_free_profile(graph), layout::testing::make_topology(2),
                {.batch = {4, 1, 1}, .cuts = {1}, .objective = objective});
  layout::check(plan, graph::graph_sha256(graph), graph);
  return plan.tie_owners;
}

// The first stage owned whatever it shared, however full it was.
TEST(TieOwners, TheStageWithRoomOwnsWhatIsShared) {
  for (const Objective objective : {Objective::kSpeed, Objective::kMemory}) {
    EXPECT_EQ(owners(make_tied(0), objective), (std::vector<layout::TieOwner>{{"t", 1}}));
    EXPECT_EQ(owners(make_tied(1), objective), std::vector<layout::TieOwner>{});
  }
}

}  // namespace
}  // namespace trireme::partition
