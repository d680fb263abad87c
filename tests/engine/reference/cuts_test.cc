#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/random_cuts.h"

namespace trireme::reference {
namespace {

class Cuts : public testing::TestWithParam<std::string> {};

TEST_P(Cuts, TwoStagesGiveTheSameBitsAtEveryAllowedCut) {
  Trial trial(GetParam(), kBatch);
  const StepRecord whole = trial.run_cut({});
  const std::vector<int> cuts = cut_positions(trial.recording.graph);
  ASSERT_GE(cuts.size(), 3U);
  for (int cut : cuts) EXPECT_EQ(difference(whole, trial.run_cut({cut})), "") << "cut " << cut;
}

TEST_P(Cuts, ThreeToFiveStagesGiveTheSameBitsAtRandomCuts) { try_random_cuts(GetParam(), 8); }

INSTANTIATE_TEST_SUITE_P(Models, Cuts, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace trireme::reference
