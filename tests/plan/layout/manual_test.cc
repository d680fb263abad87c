#include "trireme/plan/layout/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graphs/sample_graphs.h"
#include "trireme/base/error.h"

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

}  // namespace
}  // namespace trireme::layout
