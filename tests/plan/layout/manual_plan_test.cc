#include "trireme/plan/layout/manual_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {
namespace {

/// Stages as `0-2 2-4`.
std::string picture(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.stages) {
    text +=
        (text.empty() ? "" : " ") + std::to_string(stage.begin) + "-" + std::to_string(stage.end);
  }
  return text;
}

Plan cut(const std::vector<int>& cuts) {
  return make_manual_plan(graph::testing::make_mlp(), "hash", cuts, {8, 2, 2});
}

TEST(ManualPlan, StagesLieBetweenTheCuts) {
  EXPECT_EQ(picture(cut({})), "0-4");
  EXPECT_EQ(picture(cut({1})), "0-1 1-4");
  EXPECT_EQ(picture(cut({1, 2, 3})), "0-1 1-2 2-3 3-4");
  const Plan plan = cut({1, 3});
  EXPECT_EQ(train_role(plan).mesh, (Mesh{3, 1, 1}));
  EXPECT_EQ(train_role(plan).placement, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(plan.schedule.name, "simple");
  EXPECT_EQ(plan.batch.num_microbatches(), 4);
}

TEST(ManualPlan, RefusesCutsThatAreNone) {
  for (const std::vector<int>& cuts :
       std::vector<std::vector<int>>{{0}, {4}, {-1}, {2, 1}, {2, 2}, {9}}) {
    try {
      cut(cuts);
      ADD_FAILURE() << cuts.front();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

TEST(ManualPlan, EveryPositionHasAStage) {
  const Plan plan = cut({1, 3});
  EXPECT_EQ(stage_of(plan, 0), 0);
  EXPECT_EQ(stage_of(plan, 1), 1);
  EXPECT_EQ(stage_of(plan, 2), 1);
  EXPECT_EQ(stage_of(plan, 3), 2);
  EXPECT_THROW(stage_of(plan, 4), Error);
  EXPECT_THROW(stage_of(plan, -1), Error);
  EXPECT_THROW(train_role(Plan{}), Error);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(EvenCuts, LieNearestToEqualParts) {
  const graph::Graph graph = graph::testing::make_mlp();
  EXPECT_EQ(even_cuts(graph, 1), (std::vector<int>{}));
  EXPECT_EQ(even_cuts(graph, 2), (std::vector<int>{2}));
  EXPECT_EQ(even_cuts(graph, 3), (std::vector<int>{1, 2}));
  EXPECT_EQ(even_cuts(graph, 4), (std::vector<int>{1, 2, 3}));
}

TEST(EvenCuts, AreAlwaysAllowedOnes) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const graph::Graph graph = graph::testing::make_random_graph(seed, 40);
    const auto allowed = graph::allowed_cuts(graph);
    const auto num_allowed = static_cast<int>(std::count(allowed.begin(), allowed.end(), true));
    for (const int stages : {1, 2, 3, 4, 7, num_allowed + 1}) {
      if (stages > num_allowed + 1) continue;
      const std::vector<int> cuts = even_cuts(graph, stages);
      EXPECT_EQ(cuts.size(), static_cast<std::size_t>(stages - 1)) << "seed " << seed;
      EXPECT_EQ(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()), cuts.end());
      for (const int cut : cuts) EXPECT_TRUE(allowed[cut]) << "seed " << seed;
    }
  }
}

TEST(EvenCuts, SayHowManyStagesThereCanBe) {
  const graph::Graph graph = graph::testing::make_mlp();
  EXPECT_EQ(refusal([&] { even_cuts(graph, 5); }),
            "5 stages need 4 cuts and the graph allows 3; use from 1 to 4 stages");
  EXPECT_THAT(refusal([&] { even_cuts(graph, 0); }), testing::HasSubstr("use from 1 to 4 stages"));
}

TEST(Replicas, GetRanksInMeshOrder) {
  Plan plan = make_manual_plan(graph::testing::make_mlp(), "hash", std::vector<int>{2}, {12, 2, 6});
  set_replicas(plan, 3);
  EXPECT_EQ(train_role(plan).mesh, (Mesh{2, 3, 1}));
  EXPECT_EQ(train_role(plan).placement, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  set_replicas(plan, 1);
  EXPECT_EQ(train_role(plan).placement, (std::vector<int>{0, 1}));
}

TEST(Replicas, DivideTheLanes) {
  Plan plan = make_manual_plan(graph::testing::make_mlp(), "hash", {}, {12, 2, 6});
  for (const int replicas : {4, 12}) {
    EXPECT_EQ(
        refusal([&] { set_replicas(plan, replicas); }),
        std::to_string(replicas) +
            " replicas do not divide 6 lanes; each replica runs as many lanes as every other");
  }
  EXPECT_THAT(refusal([&] { set_replicas(plan, 0); }), testing::HasSubstr("0 replicas"));
  EXPECT_EQ(train_role(plan).mesh, (Mesh{1, 1, 1}));
}

}  // namespace
}  // namespace trireme::layout
