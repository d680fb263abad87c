#include "trireme/plan/published/linear_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/plan/published/made_runs.h"
#include "trireme/error.h"
#include "trireme/plan/published/least_squares.h"

namespace trireme::published {
namespace {

TEST(LinearFit, FindsWeightsThatMadeTheRuns) {
  std::vector<RunCase> cases = testing::made_runs("DGX A100 80GB", {});
  for (RunCase& one : cases) {
    const auto x = features(one);
    one.step_s = 2 * x[0] + 1.5 * x[1] + 3 * x[2] + 0.2 * x[7];
  }
  const LinearFit fit(cases);
  for (const RunCase& one : cases) EXPECT_NEAR(fit.predict(one) / one.step_s, 1, 1e-4);
}

TEST(LinearFit, BubbleIsThePartOfTheFormula) {
  RunCase one = testing::made_runs("DGX A100 80GB", {}).back();
  const auto x = features(one);
  EXPECT_DOUBLE_EQ(x[1] / x[0], 3.0 / 28);  // (p - 1) / m
  one.layout.virtual_stages = 3;
  EXPECT_DOUBLE_EQ(features(one)[1] / x[0], 1.0 / 28);
}

TEST(LinearFit, OneRunIsEnoughAndNoneIsNot) {
  std::vector<RunCase> cases = testing::made_runs("DGX A100 80GB", {});
  const LinearFit fit(std::vector<RunCase>{cases.front()});
  EXPECT_NEAR(fit.predict(cases[0]) / cases[0].step_s, 1, 1e-3);
  for (const RunCase& one : cases) EXPECT_GT(fit.predict(one), 0);
  EXPECT_THROW(LinearFit({}), Error);
}

TEST(LeastSquares, SolvesWithPivotsAndLeavesWhatHasNoWeight) {
  EXPECT_EQ(solve({{0, 2}, {4, 0}}, {6, 8}), (std::vector<double>{2, 3}));
  EXPECT_EQ(solve({{2, 0}, {0, 0}}, {6, 0}), (std::vector<double>{3, 0}));
}

}  // namespace
}  // namespace trireme::published
