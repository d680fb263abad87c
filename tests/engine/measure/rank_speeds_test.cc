#include "trireme/engine/measure/rank_speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/engine/measure/measured.h"
#include "tests/engine/measure/ranks.h"

namespace trireme::measure {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<double> speeds(const std::vector<double>& times_us) { return speeds_of(times_us); }

TEST(RankSpeedsTest, AreAgainstTheMedian) {
  EXPECT_THAT(speeds({100, 200, 100}), ElementsAre(1, 0.5, 1));
  EXPECT_THAT(speeds({50, 100, 100, 100, 133}), ElementsAre(2, 1, 1, 1, 0.75));
  EXPECT_THAT(speeds({1e6, 10, 10}), ElementsAre(0.05, 1, 1));
}

TEST(RankSpeedsTest, WhatDiffersByLittleIsTheSame) {
  EXPECT_THAT(speeds({100, 92, 108, 100}), Each(1));
  EXPECT_THAT(speeds({100, 119}), Each(1));
  EXPECT_THAT(speeds({100}), ElementsAre(1));
  EXPECT_THAT(speeds({0, 0}), Each(1));  // Nothing was measured.
}

// Each of two is near to what is between them, and the slower takes 39 % longer.
TEST(RankSpeedsTest, OfTwoRanksEachIsComparedWithTheOther) {
  EXPECT_THAT(speeds({100, 139}), ElementsAre(1.2, 0.85));
  EXPECT_THAT(speeds({100, 85, 120}), ElementsAre(1, 1.2, 0.85));
}

// One has much more to do, and so takes longer.
TEST(RankSpeedsTest, AllRanksKnowThoseOfAll) {
  std::array<std::vector<double>, 3> found;
  const std::vector<Recorded> recorded = [] {
    std::vector<Recorded> all;
    for (const char* model : {"mlp", "resnet", "mlp"}) all.emplace_back(model);
    return all;
  }();
  run_ranks(3, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    at::set_num_threads(1);
    const Recorded& own = recorded[endpoint.rank()];
    found[endpoint.rank()] =
        rank_speeds({own.recording, own.batch, ranks}, quick(), program::Capture::kOff);
  });
  ASSERT_EQ(found[0].size(), 3U);
  EXPECT_LT(found[0][1], 0.5);
  EXPECT_GT(found[0][0], 0.5);
  EXPECT_GT(found[0][2], 0.5);
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

}  // namespace
}  // namespace trireme::measure
