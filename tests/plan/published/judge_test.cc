#include "trireme/plan/published/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plan/published/made_runs.h"
#include "trireme/error.h"
#include "trireme/plan/published/judgement_show.h"

namespace trireme::published {
namespace {

using ::testing::HasSubstr;

std::vector<RunCase> two_sources() {
  std::vector<RunCase> cases = testing::made_runs("DGX A100 80GB", {}, "Alpha 2021");
  analytic::AchievedParts slower;
  slower.matrix = 0.6;
  for (RunCase& one : testing::made_runs("DGX H100", slower, "Beta 2023")) {
    one.row += 10;
    one.memory_bytes = 50e9;
    cases.push_back(one);
  }
  return cases;
}

TEST(Judge, ErrorsAreOfTheFormulas) {
  const ErrorSummary summary =
      summarize(std::vector<double>{1.1, 1.8, 3, 4.4}, std::vector<double>{1, 2, 3, 4});
  EXPECT_NEAR(summary.median, 0.1, 1e-12);
  EXPECT_NEAR(summary.mean, 0.075, 1e-12);
  EXPECT_NEAR(summary.worst, 0.1, 1e-12);
  EXPECT_NEAR(summary.bias, 0.05, 1e-12);
  EXPECT_EQ(summary.rank_correlation, 1);
}

TEST(Judge, RankCorrelationIsSpearmans) {
  EXPECT_EQ(rank_correlation(std::vector<double>{1, 2, 3}, std::vector<double>{9, 5, 1}), -1);
  // Ties have the mean of their ranks: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(rank_correlation(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}),
              0.9486832980505138, 1e-12);
  EXPECT_TRUE(
      std::isnan(rank_correlation(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3})));
  EXPECT_TRUE(std::isnan(rank_correlation(std::vector<double>{1, 2}, std::vector<double>{1, 2})));
}

TEST(Judge, GroupsAreFoundBySourceAndDevice) {
  const RunCase one = two_sources().front();
  EXPECT_TRUE(is_meant("alpha", one));
  EXPECT_TRUE(is_meant("2021@a100", one));
  EXPECT_FALSE(is_meant("alpha@h100", one));
  EXPECT_FALSE(is_meant("beta", one));
  EXPECT_TRUE(is_meant("all", one));
}

TEST(Judge, CalibratesOnOneAndJudgesTheOther) {
  const std::vector<RunCase> cases = two_sources();
  const Judgement judgement = judge(cases, {"alpha"}, {});
  EXPECT_EQ(judgement.num_calibration, 10U);
  ASSERT_EQ(judgement.groups.size(), 1U);
  EXPECT_EQ(judgement.groups[0].name, "Beta 2023 @ DGX H100");
  EXPECT_EQ(judgement.groups[0].num_cases, 10U);
  EXPECT_EQ(judgement.groups[0].num_with_memory, 10U);
  EXPECT_GT(judgement.groups[0].predicted.rank_correlation, 0.95);
  EXPECT_LT(judgement.groups[0].predicted.bias, -0.03);  // It was slower than the others said.
}

TEST(Judge, EachGroupIsLeftOutOnce) {
  const std::vector<RunCase> cases = two_sources();
  const Judgement judgement = judge_each(cases, LeaveOut::kSource);
  EXPECT_EQ(judgement.groups.size(), 2U);
  EXPECT_EQ(judgement.runs.size(), cases.size());
  EXPECT_EQ(judgement.all.num_cases, cases.size());
  const Judgement folds = judge_each(cases, LeaveOut::kFifth);
  EXPECT_EQ(folds.all.num_cases, cases.size());
  EXPECT_LT(folds.all.predicted.median, judgement.all.predicted.median);
  EXPECT_THROW(judge_each(std::span(cases).first(10), LeaveOut::kDevice), Error);
}

TEST(Judge, RefusesWordsThatMeanNothingOrBoth) {
  const std::vector<RunCase> cases = two_sources();
  try {
    judge(cases, {"gamma"}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("no run's source contains 'gamma'; the groups are:"));
    EXPECT_THAT(error.message(), HasSubstr("Beta 2023 @ DGX H100 (10)"));
  }
  try {
    judge(cases, {"alpha"}, {"all"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("row 2 of Alpha 2021 would calibrate and be judged"));
  }
}

TEST(Judge, ShowsGroupsRowsAndWhatWasLeftOut) {
  RunCases all;
  all.cases = two_sources();
  all.skipped = {{30, "no microbatch", "microbatch is empty"}, {31, "no microbatch", ""}};
  const Judgement judgement = judge(all.cases, {"alpha"}, {"beta"});
  const std::string text = show(judgement, all, true);
  EXPECT_THAT(text, HasSubstr("20 of 22 rows can be predicted; 10 calibrate, 10 are judged"));
  EXPECT_THAT(text, HasSubstr("no microbatch: 2, rows 30, 31"));
  EXPECT_THAT(text, HasSubstr("gpt-76b"));
  const Json json = to_json(judgement, all);
  EXPECT_EQ(json["skipped"].size(), 2U);
  EXPECT_EQ(json["runs"].size(), 10U);
  EXPECT_EQ(json["groups"][0]["cases"], 10);
}

}  // namespace
}  // namespace trireme::published
