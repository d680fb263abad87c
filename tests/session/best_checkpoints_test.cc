#include "trireme/session/best_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "trireme/error.h"

namespace trireme::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BestCheckpoints best_of(bool is_most = false, const std::string& by = "") {
  return BestCheckpoints(RunOptions{.keep_best = 2, .best_by = by, .best_is_most = is_most});
}

void offer(BestCheckpoints& best, std::int64_t step, double value) {
  best.see({step, value});
  if (best.takes(value)) best.add({step, value});
}

BestDocument through_text(const BestDocument& document) {
  const std::string text = to_document_text(kBestDocument, to_json(document));
  return best_from_json(parse_document(kBestDocument, text, "best"), "best");
}

TEST(BestCheckpoints, KeepsAsManyAsAreAskedFor) {
  BestCheckpoints least = best_of(), most = best_of(/*is_most=*/true);
  for (const auto& [step, value] : {std::pair(1, 3.0), {2, 1.0}, {3, 2.0}, {4, 1.0}, {5, 5.0}}) {
    offer(least, step, value);
    offer(most, step, value);
  }
  EXPECT_THAT(least.document().checkpoints, ElementsAre(Judged{2, 1}, Judged{4, 1}));
  EXPECT_THAT(most.document().checkpoints, ElementsAre(Judged{5, 5}, Judged{1, 3}));
  EXPECT_FALSE(least.takes(1.0)) << "the first of two alike is better";
}

TEST(BestCheckpoints, WhatIsNotFiniteIsNotGood) {
  BestCheckpoints best = best_of(/*is_most=*/true);
  EXPECT_FALSE(best.takes(kNan));
  EXPECT_FALSE(best.takes(std::numeric_limits<double>::infinity()));
  BestCheckpoints aims(RunOptions{.patience = 1, .target = 5});
  EXPECT_EQ(aims.see({0, kNan}), "");
  EXPECT_EQ(aims.see({2, 9}), "") << "better than what is no number";
  EXPECT_THAT(aims.see({4, kNan}), HasSubstr("1 evaluations in a row"));
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
  EXPECT_EQ(patient.see({0, 5}), "");
  EXPECT_EQ(patient.see({2, 3}), "");
  EXPECT_EQ(patient.see({4, 3}), "");
  EXPECT_EQ(patient.see({6, 4}), "2 evaluations in a row have no better loss than 3");
  EXPECT_EQ(patient.see({8, 2}), "");
  BestCheckpoints aims(RunOptions{.best_by = "accuracy", .best_is_most = true, .target = 0.5});
  EXPECT_EQ(aims.see({2, 0.25}), "");
  EXPECT_EQ(aims.see({4, 0.5}), "the evaluation's accuracy is 0.5, and --target is 0.5");
}

// A run that goes on from step 4 meets step 6 again.
TEST(BestCheckpoints, GoOnFromTheirFile) {
  BestCheckpoints before(RunOptions{.keep_best = 2, .patience = 2});
  for (const auto& [step, value] : {std::pair(2, 3.0), {4, 3.5}, {6, 4.0}})
    offer(before, step, value);
  BestCheckpoints again(RunOptions{.keep_best = 2, .patience = 2});
  EXPECT_TRUE(again.resume(through_text(before.document()), 4));
  EXPECT_THAT(again.steps(), ElementsAre(2, 4));
  EXPECT_THAT(again.document().evaluations, ElementsAre(Judged{2, 3}, Judged{4, 3.5}));
  EXPECT_THAT(again.see({6, 4}), HasSubstr("2 evaluations in a row"));
  BestCheckpoints other = best_of(/*is_most=*/true);
  EXPECT_FALSE(other.resume(before.document(), 4));
  EXPECT_TRUE(other.document().checkpoints.empty());
}

TEST(BestCheckpoints, AFileOfAnotherFormIsNamed) {
  for (
      const char* text :
      {R"({"by": "", "is_most": false, "checkpoints": []})",
       R"({"by": "", "is_most": 1, "checkpoints": [], "evaluations": []})",
       R"({"by": "", "is_most": true, "checkpoints": [{"step": -1, "value": 0}], "evaluations": []})"}) {
    try {
      best_from_json(Json::parse(text), "best.json");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      EXPECT_THAT(error.message(), HasSubstr("best.json"));
    }
  }
}

}  // namespace
}  // namespace trireme::session
