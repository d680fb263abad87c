#include "trireme/plan/schedule/grid.h"

#include <gtest/gtest.h>

#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

TEST(Grid, DrawsThePicturesOfTheHeaders) {
  EXPECT_EQ(grid(make_schedule("simple", 2, 3)),
            "rank 0 | F0 F1 F2 .. .. .. B0--- B1--- B2---\n"
            "rank 1 | .. F0 F1 F2 B0--- B1--- B2--- .. ..\n");
  EXPECT_EQ(grid(make_schedule("interleaved", 2, 4)),
            "rank 0 | F0 F1 .. .. B0--- F2 B1--- F3 B2--- .. B3---\n"
            "rank 1 | .. F0 B0--- F1 B1--- F2 B2--- F3 B3--- .. ..\n");
}

TEST(Grid, UnderlinesTheMark) {
  EXPECT_EQ(grid(make_schedule("interleaved", 2, 2), {.mark = Cell{1, 2}}),
            "rank 0 | F0 F1 .. .. B0--- .. B1---\n"
            "rank 1 | .. F0 B0--- F1 B1--- .. ..\n"
            "       |             ^^\n");
  EXPECT_EQ(grid(make_schedule("simple", 1, 1), {.mark = Cell{0, 2}}),
            "rank 0 | F0 B0---\n"
            "       |          ^^\n");
}

TEST(Grid, CutsLongRowsAroundTheMark) {
  EXPECT_EQ(grid(make_schedule("simple", 1, 9), {.mark = Cell{0, 6}, .max_columns = 11}),
            "rank 0 | F5 F6 F7 F8\n"
            "       |    ^^\n");
  EXPECT_EQ(grid(make_schedule("simple", 1, 9), {.max_columns = 5}), "rank 0 | F0 F1\n");
}

TEST(Grid, NamesTheStageWhereItIsNotTheRank) {
  Schedule schedule{2, 1, {{}}};
  for (const char* text : {"0F0", "1F0", "1B0", "0B0"}) {
    schedule.ranks[0].push_back(parse_action(text));
  }
  EXPECT_EQ(grid(schedule), "rank 0 | 0F0 1F0 1B0---- 0B0----\n");
}

TEST(Grid, TakesUnitTimesAndWideNumbers) {
  EXPECT_EQ(grid(make_schedule("simple", 2, 1), {.times = {.forward = 2, .backward = 1}}),
            "rank 0 | F0--- .. .. .. B0\n"
            "rank 1 | .. .. F0--- B0 ..\n");
  const std::string text = grid(make_schedule("simple", 11, 11));
  EXPECT_EQ(text.substr(0, 24), "rank  0 | F0  F1  F2  F3");
}

}  // namespace
}  // namespace trireme::schedule
