#include "trireme/session/best_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "trireme/error.h"

namespace trireme::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kept = BestCheckpoints::Kept;

BestCheckpoints best_of(bool is_most = false, const std::string& by = "") {
  return BestCheckpoints(RunOptions{.keep_best = 2, .best_by = by, .best_is_most = is_most});
}

void offer(BestCheckpoints& best, std::int64_t step, double value) {
  if (best.takes(value)) best.add(step, value);
}

TEST(BestCheckpoints, KeepsAsManyAsAreAskedFor) {
  BestCheckpoints least = best_of(), most = best_of(/*is_most=*/true);
  for (const auto& [step, value] : {std::pair(1, 3.0), {2, 1.0}, {3, 2.0}, {4, 1.0}, {5, 5.0}}) {
    offer(least, step, value);
    offer(most, step, value);
  }
  EXPECT_THAT(least.kept(), ElementsAre(Kept{2, 1}, Kept{4, 1}));
  EXPECT_THAT(most.kept(), ElementsAre(Kept{5, 5}, Kept{1, 3}));
  EXPECT_FALSE(least.takes(1.0)) << "the first of two alike is better";
}

TEST(BestCheckpoints, WhatIsNotFiniteIsNotGood) {
  BestCheckpoints best = best_of(/*is_most=*/true);
  EXPECT_FALSE(best.takes(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(best.takes(std::numeric_limits<double>::infinity()));
}

TEST(BestCheckpoints, AreJudgedByALossOrMetric) {
  const StepLosses losses{{{.name = "loss", .sum = 6, .weight = 2, .coefficient = 2},
                           {.name = "accuracy", .sum = 1, .weight = 4, .coefficient = 0}}};
  EXPECT_EQ(best_of().value_of(losses), 6);
  EXPECT_EQ(best_of(true, "accuracy").value_of(losses), 0.25);
  try {
    best_of(true, "accurracy").value_of(losses);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("evaluations have loss, accuracy"));
  }
}

TEST(BestCheckpoints, SayWhenARunHasTrainedEnough) {
  BestCheckpoints patient(RunOptions{.patience = 2});
  EXPECT_EQ(patient.see(0, 5), "");
  EXPECT_EQ(patient.see(2, 3), "");
  EXPECT_EQ(patient.see(4, 3), "");
  BestCheckpoints again(RunOptions{.patience = 2});
  EXPECT_TRUE(again.take_text(patient.to_text(), "best.json"));
  for (BestCheckpoints* one : {&patient, &again}) {
    EXPECT_EQ(one->see(6, 4), "2 evaluations in a row have no better loss than 3");
    EXPECT_EQ(one->see(8, 2), "");
  }
  // A run that goes on from step 4 meets step 6 again.
  patient.keep_only(4, {});
  EXPECT_EQ(patient.see(6, 2.5), "");
  BestCheckpoints aims(RunOptions{.best_by = "accuracy", .best_is_most = true, .target = 0.5});
  EXPECT_EQ(aims.see(2, 0.25), "");
  EXPECT_EQ(aims.see(4, 0.5), "the evaluation's accuracy is 0.5, and --target is 0.5");
}

TEST(BestCheckpoints, ComeBackFromTheirFile) {
  BestCheckpoints best = best_of();
  offer(best, 4, 0.5);
  offer(best, 8, 0.25);
  BestCheckpoints again = best_of();
  EXPECT_TRUE(again.take_text(best.to_text(), "best.json"));
  EXPECT_EQ(again.kept(), best.kept());
  again.keep_only(8, {4});
  EXPECT_THAT(again.steps(), ElementsAre(4));
  BestCheckpoints other = best_of(/*is_most=*/true);
  EXPECT_FALSE(other.take_text(best.to_text(), "best.json"));
  EXPECT_TRUE(other.kept().empty());
  EXPECT_THROW(other.take_text("{}", "best.json"), Error);
}

}  // namespace
}  // namespace trireme::session
