#include "trireme/plan/schedule/timeline.h"

#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::schedule {
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
  EXPECT_EQ(time_span(two_ranks()).begin_us, 10);
  EXPECT_EQ(time_span(two_ranks()).length_us(), 100);
}

TEST(Usage, OfNothingIsNothing) {
  EXPECT_TRUE(usage(Timeline{}).empty());
  EXPECT_EQ(time_span(Timeline{}).length_us(), 0);
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
  EXPECT_EQ(time_span(timeline).length_us(), 33);
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

TimelineEvent event(int rank, const std::string& kind, double start_us, double duration_us) {
  return {.rank = rank, .kind = kind, .start_us = start_us, .duration_us = duration_us};
}

/// Two ranks, two microbatches, one forward one backward.
Timeline pipeline() {
  return {"measured",
          0,
          {event(0, "F", 100, 10), event(0, "F", 110, 10), event(0, "B", 140, 20),
           event(0, "B", 170, 20), event(1, "F", 110, 10), event(1, "B", 120, 20),
           event(1, "F", 140, 10), event(1, "B", 150, 20)}};
}

TEST(Draw, OneRowPerRank) {
  EXPECT_EQ(draw(pipeline(), 9),
            "rank 0 | FF..BB.BB\n"
            "rank 1 | .FBBFBB..\n");
  EXPECT_EQ(draw(pipeline(), 18),
            "rank 0 | FFFF....BBBB..BBBB\n"
            "rank 1 | ..FFBBBBFFBBBB....\n");
}

TEST(Draw, AColumnShowsWhatRanLongestInIt) {
  const Timeline timeline{"measured",
                          0,
                          {event(0, "F", 0, 4), event(0, "B", 4, 10), event(0, "reduce", 26, 6),
                           event(0, "update", 35, 5)}};
  // Columns of 10 us: F 4, B 6 | B 4 and 6 idle | reduce 4, 6 idle | reduce 2, update 5, 3 idle.
  EXPECT_EQ(draw(timeline, 4), "rank 0 | B..u\n");
  EXPECT_EQ(draw(timeline, 1), "rank 0 | .\n");
}

TEST(Draw, OtherTracksAreNotShown) {
  Timeline timeline = pipeline();
  timeline.events.push_back({.rank = 11, .track = "wait", .start_us = 100, .duration_us = 90});
  EXPECT_EQ(draw(timeline, 9),
            "rank  0 | FF..BB.BB\n"
            "rank  1 | .FBBFBB..\n"
            "rank 11 | .........\n");
}

TEST(Draw, OfNothingIsNothing) {
  EXPECT_EQ(draw(Timeline{}, 10), "");
  EXPECT_EQ(draw({"measured", 0, {event(0, "F", 5, 0)}}, 3), "rank 0 | ...\n");
}

TEST(Draw, RefusesAWidthThatIsNone) {
  for (const int columns : {0, -1, 1001}) {
    try {
      draw(pipeline(), columns);
      ADD_FAILURE() << columns;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace trireme::schedule
