#include "trireme/plan/timeline/draw.h"

#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::timeline {
namespace {

Event event(int rank, const std::string& kind, double start_us, double duration_us) {
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
}  // namespace trireme::timeline
