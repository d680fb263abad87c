// The published runs that the project keeps: facts, typed in with their sources.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "trireme/plan/analytic/predict.h"
#include "trireme/plan/published/calibrate.h"
#include "trireme/plan/published/run_case.h"

namespace trireme::published {
namespace {

const RunCases& known_runs() {
  static const RunCases kAll = make_cases(read_runs("benchmarks/simulator/runs.csv"));
  return kAll;
}

std::vector<RunCase> of_source(const std::string& word) {
  std::vector<RunCase> result;
  for (const RunCase& one : known_runs().cases) {
    if (one.source.find(word) != std::string::npos) result.push_back(one);
  }
  return result;
}

TEST(KnownRuns, AllButSomeCanBePredicted) {
  EXPECT_EQ(known_runs().cases.size() + known_runs().skipped.size(), 660U);
  EXPECT_EQ(known_runs().cases.size(), 608U);
  std::map<std::string, int> reasons;
  for (const SkippedRun& one : known_runs().skipped) ++reasons[one.reason];
  EXPECT_LE(reasons["the layout cannot be"], 1);
}

/// vTrain's runs calibrate, Megatron's of 2021 are judged: other people, other clusters, other sizes.
TEST(KnownRuns, OneSourceCalibratesForAnother) {
  const analytic::AchievedByDevice fitted = calibrate(of_source("vTrain"));
  const std::vector<RunCase> judged = of_source("2104.04473");
  ASSERT_EQ(judged.size(), 10U);
  const std::vector<double> steps = predict_steps(judged, fitted);
  std::vector<double> errors;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    errors.push_back(std::abs(steps[i] / judged[i].step_s - 1));
  }
  std::ranges::sort(errors);
  EXPECT_LT((errors[4] + errors[5]) / 2, 0.05);
  EXPECT_LT(errors.back(), 0.12);
}

TEST(KnownRuns, ConvolutionNetworksCalibrateNothing) {
  std::vector<RunCase> runs = of_source("2104.04473");
  const analytic::AchievedByDevice fitted = calibrate(runs);
  const std::vector<RunCase> networks = of_source("resnet");
  ASSERT_EQ(networks.size(), 10U);
  for (const RunCase& one : networks) EXPECT_TRUE(one.layout.has_async_steps) << one.row;
  runs.insert(runs.end(), networks.begin(), networks.end());
  EXPECT_EQ(calibrate(runs), fitted);
}

}  // namespace
}  // namespace trireme::published
