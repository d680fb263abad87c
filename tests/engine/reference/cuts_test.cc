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

// Regions of one stage and of several, few and all that there can be: of four microbatches two are replayed.
TEST_P(Cuts, RegionsThatRecomputeGiveTheSameBits) {
  Trial trial(GetParam(), kBatch);
  const StepRecord whole = trial.run_cut({});
  const std::vector<int> all = cut_positions(trial.recording.graph);
  std::mt19937 random(43);
  int num_compared = 0;
  for (const std::size_t num_cuts : {0, 0, 1, 2, 2}) {
    std::vector<int> cuts, regions;
    std::sample(all.begin(), all.end(), std::back_inserter(cuts), num_cuts, random);
    std::sample(all.begin(), all.end(), std::back_inserter(regions), 1 + random() % all.size(),
                random);
    for (const std::vector<int>& begins : {all, regions}) {
      const auto divided = trial.run_regions(cuts, begins);
      if (!divided) continue;
      ++num_compared;
      EXPECT_EQ(difference(whole, *divided), "")
          << testing::PrintToString(cuts) << " " << testing::PrintToString(begins);
    }
  }
  EXPECT_GT(num_compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Cuts, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace trireme::reference
