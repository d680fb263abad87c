#include "trireme/plan/layout/layout_show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

TEST(PlanShow, ReadsAsTables) {
  const graph::Graph graph = graph::testing::make_mlp();
  const Plan plan = make_manual_plan(graph, std::string(64, 'a'), std::array{2}, {16, 2, 4});
  EXPECT_EQ(show(plan, graph),
            R"(plan with 2 stages, schedule simple, objective manual
  batch of 16 samples in 4 lanes of 2 microbatches of 2 samples
  graph aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

roles
  role   pipeline  data  shard  ranks
  train         2     1      1  0 1

stages (elements of the parameters it uses; receives: forward, per microbatch)
  stage  nodes  positions  first     last  elements  receives  copies
      0      2  0..1       0/linear  relu       144       0 B       0
      1      2  2..3       2/linear  loss        68     128 B       0

no prediction: cut by hand, without a profile
)");
}

TEST(PlanShow, SaysWithoutTheGraphWhatItCan) {
  const graph::Graph graph = graph::testing::make_mlp();
  const std::string text =
      show(make_manual_plan(graph, std::string(64, 'a'), std::array{2}, {16, 2, 4}));
  EXPECT_THAT(text, ::testing::StartsWith("plan with 2 stages, schedule simple"));
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "stages (their nodes and parameters are in the graph: --graph FILE)\n"
                        "  stage  nodes  positions  copies\n"
                        "      0      2  0..1            0\n"
                        "      1      2  2..3            0\n"));
}

TEST(PlanShow, TellsRanksOfSeveralReplicas) {
  const graph::Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, "hash", std::array{2}, {16, 2, 4});
  plan.roles[0] = {"train", {2, 2, 1}, {0, 1, 2, 2}};
  EXPECT_THAT(show(plan), ::testing::HasSubstr("  train         2     2      1  0 1 2 2\n"
                                               "\n"
                                               "ranks of the pipeline's positions\n"
                                               "  position  stages  ranks  replicas of each\n"
                                               "         0  0           2                 1\n"
                                               "         1  1           1                 2\n"));
}

TEST(PlanShow, TellsScheduleAndBalance) {
  const graph::Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, "hash", std::array{2}, {16, 2, 4});
  plan.schedule = {.name = "interleaved", .parameters = {{"active_microbatches", 2}}};
  plan.balance = Balance::kUniform;
  EXPECT_THAT(show(plan), ::testing::HasSubstr("schedule interleaved, active_microbatches 2, cuts "
                                               "by balance uniform, objective manual"));
}

TEST(PlanShow, TellsWhatRunsAgain) {
  const graph::Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, "hash", std::array{2}, {16, 2, 4});
  for (Stage& stage : plan.stages) stage.recompute = true;
  plan.stages[1].regions = {3};
  const std::string expected =
      "\nforwards that run again for the backward\n"
      "  stage 0: whole\n"
      "  stage 1: 2 regions, from 2, 3\n";
  EXPECT_THAT(show(plan, graph), ::testing::HasSubstr(expected));
  EXPECT_THAT(show(plan), ::testing::HasSubstr(expected));
}

TEST(PlanShow, TellsOwnersAndPrediction) {
  const graph::Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, "hash", {}, {1, 1, 1});
  plan.tie_owners = {{"2.weight", 0}};
  plan.prediction = Prediction{12.5, 10, {{{"weights", 2048}}}, {"compute"}};
  const std::string text = show(plan, graph);
  EXPECT_THAT(text, ::testing::HasSubstr("1 sample in 1 lane of 1 microbatch of 1 sample\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("2.weight       0"));
  EXPECT_THAT(text, ::testing::HasSubstr("prediction: step 12.5 ms, lower bound 10 ms"));
  EXPECT_THAT(text, ::testing::HasSubstr("rank 0 peak: weights 2.0 KiB"));
  EXPECT_THAT(text, ::testing::HasSubstr("stage 0 is limited by compute"));
}

TEST(ParameterMapShow, ListsBucketsAndSlots) {
  ParameterMap map{"g", "p", {}};
  map.buckets.push_back({.stage = 1, .num_elements = 20'016});
  map.buckets[0].slots = {{"head.weight", 0, 0, 20'000, 3}, {"head.bias", 0, 20'000, 2, 5}};
  map.buckets[0].shards = {{0, 0, 20'016}};
  EXPECT_EQ(show(map), R"(parameter map
  graph g
  plan p

buckets
  bucket  stage  kind   dtype  elements  slots  shards
       0      1  owner  f32      20,016      2       1

slots, in the order in which the backward fills them
  bucket  parameter    site  offset  elements  first norm block
       0  head.weight     0       0    20,000                 3
       0  head.bias       0  20,000         2                 5
)");
}

TEST(ParameterMapShow, NothingToTrain) {
  EXPECT_NE(show(ParameterMap{}).find("buckets\n"), std::string::npos);
}

}  // namespace
}  // namespace trireme::layout
