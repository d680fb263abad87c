#include "trireme/plan/timeline/usage.h"

#include <gtest/gtest.h>

namespace trireme::timeline {
namespace {

/// Rank 0 computes [10, 30) and, within it, [20, 40); waits [40, 60). Rank 2 computes [50, 110).
Timeline two_ranks() {
  Timeline timeline{"measured", 7, {}};
  timeline.events = {
      {.rank = 2, .kind = "F", .start_us = 50, .duration_us = 60},
      {.rank = 0, .kind = "F", .start_us = 10, .duration_us = 20},
      {.rank = 0, .kind = "update", .start_us = 20, .duration_us = 20},
      {.rank = 0, .track = "wait", .kind = "recv", .start_us = 40, .duration_us = 20}};
  return timeline;
}

TEST(Usage, CountsComputeOnceAndTheRestAsIdle) {
  EXPECT_EQ(usage(two_ranks()), (std::vector<RankUsage>{{0, 30, 70}, {2, 60, 40}}));
  EXPECT_DOUBLE_EQ(usage(two_ranks())[0].bubble(), 0.7);
  EXPECT_EQ(extent(two_ranks()).begin_us, 10);
  EXPECT_EQ(extent(two_ranks()).length_us(), 100);
}

TEST(Usage, OfNothingIsNothing) {
  EXPECT_TRUE(usage(Timeline{}).empty());
  EXPECT_EQ(extent(Timeline{}).length_us(), 0);
  EXPECT_EQ(RankUsage{}.bubble(), 0);
  const Timeline instant{"measured", 0, {{.rank = 1}}};
  EXPECT_EQ(usage(instant), (std::vector<RankUsage>{{1, 0, 0}}));
}

// The schedule `simple` on p ranks: each works m(f + b) and has a bubble of (p - 1) / (m + p - 1).
TEST(Usage, BubbleOfAPipelineIsThatOfTheFormula) {
  const int p = 4, m = 8;
  Timeline timeline{"predicted", 0, {}};
  for (int rank = 0; rank < p; ++rank) {
    for (int i = 0; i < m; ++i) {
      timeline.events.push_back(
          {.rank = rank, .kind = "F", .start_us = 1. * (rank + i), .duration_us = 1});
      const double start = m + p - 1 + 2. * (p - 1 - rank + i);
      timeline.events.push_back({.rank = rank, .kind = "B", .start_us = start, .duration_us = 2});
    }
  }
  EXPECT_EQ(extent(timeline).length_us(), 33);
  for (const RankUsage& one : usage(timeline)) {
    EXPECT_EQ(one.busy_us, 24);
    EXPECT_DOUBLE_EQ(one.bubble(), 3. / 11);
  }
}

TEST(Usage, ShowsATable) {
  EXPECT_EQ(show_usage(two_ranks()),
            "measured step 7\n"
            "  rank     busy ms     idle ms   bubble\n"
            "     0       0.030       0.070   70.0 %\n"
            "     2       0.060       0.040   40.0 %\n"
            "   all       0.090       0.110   55.0 %\n");
}

}  // namespace
}  // namespace trireme::timeline
