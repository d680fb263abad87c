#include "trireme/plan/published/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/plan/published/made_runs.h"
#include "trireme/error.h"
#include "trireme/plan/published/judge.h"

namespace trireme::published {
namespace {

/// Runs of a machine that achieves parts unknown to the fit are predicted, those left out too.
TEST(Calibrate, FindsThePartsThatMadeTheRuns) {
  analytic::AchievedParts truth;
  truth.matrix = 0.62;
  truth.memory = 0.9;
  truth.link = 0.55;
  truth.network = 0.9;
  const std::vector<RunCase> cases = testing::made_runs("DGX A100 80GB", truth);
  std::vector<RunCase> calibration, judged;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    (i % 2 == 0 ? calibration : judged).push_back(cases[i]);
  }
  const analytic::AchievedByDevice fitted = calibrate(calibration);
  const std::vector<double> predicted = predict_steps(judged, fitted);
  const std::vector<double> before = predict_steps(judged, {});
  double error = 0, error_before = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    error = std::max(error, std::abs(predicted[i] / judged[i].step_s - 1));
    error_before = std::max(error_before, std::abs(before[i] / judged[i].step_s - 1));
  }
  EXPECT_GT(error_before, 0.12);
  EXPECT_LT(error, 0.05);
  EXPECT_NEAR(achieved_of(fitted, "A100-80").matrix, truth.matrix, 0.04);
}

/// A device without runs gets what others have.
TEST(Calibrate, OtherDevicesFollow) {
  analytic::AchievedParts truth;
  truth.matrix = 0.6;
  const auto fitted = calibrate(testing::made_runs("DGX A100 80GB", truth));
  EXPECT_LT(achieved_of(fitted, "H100").matrix, 0.7);
  EXPECT_EQ(achieved_of(fitted, "H100"), achieved_of(fitted, ""));
}

TEST(Calibrate, TheSameRunsGiveTheSameBits) {
  const auto cases = testing::made_runs("DGX A100 80GB", {});
  EXPECT_EQ(calibrate(cases), calibrate(cases));
  EXPECT_THROW(calibrate({}), Error);
}

/// One run that is far off moves little: others are found as well as without it.
TEST(Calibrate, AnOutlierMovesLittle) {
  analytic::AchievedParts truth;
  truth.matrix = 0.6;
  std::vector<RunCase> cases = testing::made_runs("DGX A100 80GB", truth);
  cases[3].step_s *= 4;
  const auto fitted = calibrate(cases);
  const std::vector<double> predicted = predict_steps(cases, fitted);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (i == 3) continue;
    EXPECT_NEAR(predicted[i] / cases[i].step_s, 1, 0.06) << i;
  }
}

}  // namespace
}  // namespace trireme::published
