#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>
#include <random>

#include "tests/engine/serial/trial.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::serial {
namespace {

constexpr layout::BatchLayout kBatch{.global_batch = 12, .microbatch = 3, .lanes = 2};

std::vector<int> cut_positions(const graph::Graph& graph) {
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> result;
  for (std::size_t c = 0; c < allowed.size(); ++c) {
    if (allowed[c]) result.push_back(static_cast<int>(c));
  }
  return result;
}

class Cuts : public testing::TestWithParam<std::string> {};

TEST_P(Cuts, TwoStagesGiveTheSameBitsAtEveryAllowedCut) {
  Trial trial(GetParam(), kBatch);
  const StepRecord whole = trial.run_cut({});
  const std::vector<int> cuts = cut_positions(trial.recording.graph);
  ASSERT_GE(cuts.size(), 3U);
  for (int cut : cuts) EXPECT_EQ(difference(whole, trial.run_cut({cut})), "") << "cut " << cut;
}

TEST_P(Cuts, ThreeToFiveStagesGiveTheSameBitsAtRandomCuts) {
  Trial trial(GetParam(), kBatch);
  const StepRecord whole = trial.run_cut({});
  const std::vector<int> cuts = cut_positions(trial.recording.graph);
  std::mt19937 random(42);
  for (std::size_t stages : {3, 4, 5}) {
    for (int sample = 0; sample < 8; ++sample) {
      std::vector<int> chosen;
      std::sample(cuts.begin(), cuts.end(), std::back_inserter(chosen), stages - 1, random);
      EXPECT_EQ(difference(whole, trial.run_cut(chosen)), "")
          << testing::PrintToString(chosen) << ", seed 42";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Cuts, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace trireme::serial
