#include "trireme/plan/simulate/held_batches.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::simulate {
namespace {

using graph::ValueId;
using layout::testing::make_plan;

/// By position: batches of `bytes` that a rank holds.
std::vector<std::int64_t> batches_of(const graph::Graph& graph, const layout::Plan& plan,
                                     std::int64_t bytes) {
  const schedule::Schedule schedule = schedule::schedule_of(plan);
  const layout::Role& role = layout::train_role(plan);
  std::vector<std::vector<schedule::Action>> actions;
  for (int p = 0; p < role.mesh.pipeline; ++p) {
    actions.push_back(schedule::actions_of_rank(schedule.ranks[p], role.replicas_per_rank(p),
                                                schedule.num_microbatches));
  }
  std::vector<std::int64_t> held = held_batch_bytes(graph, plan, actions);
  for (std::int64_t& rank : held) {
    EXPECT_EQ(rank % bytes, 0);
    rank /= bytes;
  }
  return held;
}

using Batches = std::vector<std::int64_t>;

TEST(HeldBatches, FewerLargeOnesAreReadAhead) {
  EXPECT_EQ(batches_ahead(0), 16);
  EXPECT_EQ(batches_ahead(1 << 19), 8);
  EXPECT_EQ(batches_ahead(1 << 20), 4);
  EXPECT_EQ(batches_ahead(3 << 20), 1);
  EXPECT_EQ(batches_ahead(std::int64_t{1} << 40), 1);
}

/// x is taken by node 0, mask by node 2, of which the last makes the loss.
class FourNodes : public testing::Test {
 protected:
  FourNodes() {
    const ValueId x = b.input("x", {4}), mask = b.input("mask", {4});
    ValueId h = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
    h = b.node("mul", {h, h}, b.batch({4}));
    h = b.node("mul", {h, mask}, b.batch({4}));
    weight = b.node("sum", {mask}, b.fixed({}));
    b.loss(b.node("mul", {h, h}, b.batch({4})));
  }

  graph::testing::GraphBuilder b;
  ValueId weight = -1;
};

TEST_F(FourNodes, RanksWhoseStagesTakeNoFieldHoldNone) {
  EXPECT_EQ(batches_of(b.graph(), make_plan(b.graph(), {{1, 2, 4}, 6, 1}), 32),
            Batches({17, 0, 17, 0}));
}

// The loss's weight is computed where its value is made, from samples.
TEST_F(FourNodes, WhoWeighsALossReadsTheStepBeforeItRuns) {
  b.graph().losses[0].weight = weight;
  EXPECT_EQ(batches_of(b.graph(), make_plan(b.graph(), {{1, 4}, 6, 1}), 32), Batches({17, 17, 17}));
  EXPECT_EQ(batches_of(b.graph(), make_plan(b.graph(), {{1}, 6, 1}), 32), Batches({17, 6 + 16}));
  EXPECT_EQ(batches_of(b.graph(), make_plan(b.graph(), {{1}, 64, 1}), 32), Batches({17, 64 + 64}));
  b.graph().losses[0].weight = b.graph().inputs[1].value;  // A field itself.
  EXPECT_EQ(batches_of(b.graph(), make_plan(b.graph(), {{1, 4}, 6, 1}), 32), Batches({17, 17, 17}));
}

TEST(HeldBatches, OfAWholeStepAreKeptWhileSmall) {
  EXPECT_TRUE(keeps_batches(1 << 20, 32));
  EXPECT_FALSE(keeps_batches(1 << 20, 33));
  EXPECT_EQ(held_batch_bytes(1 << 20, {true, true}, 33), 5 << 20);  // Read twice.
  EXPECT_EQ(held_batch_bytes(1 << 20, {}, 33), 0);
}

// One rank runs all of its two stages, of which both take fields: it holds a microbatch from one forward to the other.
TEST_F(FourNodes, StagesOfARankShareThem) {
  layout::Plan plan = make_plan(b.graph(), {{2}, 6, 1, "v_half"});
  plan.roles[0].mesh.pipeline = 1;
  plan.roles[0].placement = {0};
  for (layout::Stage& stage : plan.stages) stage.position = 0;
  EXPECT_EQ(batches_of(b.graph(), plan, 32), Batches({17}));
  plan.schedule.name = "simple";  // All forwards of the first, then of the second.
  EXPECT_EQ(batches_of(b.graph(), plan, 32), Batches({6 + 16}));
}

}  // namespace
}  // namespace trireme::simulate
