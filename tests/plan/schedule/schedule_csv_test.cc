#include "trireme/plan/schedule/schedule_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;

TEST(ScheduleCsv, HasAColumnForEachSlot) {
  EXPECT_EQ(to_csv(make_schedule("interleaved", 2, 3)),
            "0F0,0F1,,0B0,0F2,0B1,,0B2\n"
            ",1F0,1B0,1F1,1B1,1F2,1B2,\n");
  EXPECT_EQ(to_csv(make_schedule("v_half", 4, 1, 2)),
            "0F0,,,3F0,3I0,3W0,,0I0,0W0\n"
            ",1F0,2F0,,,2I0,1I0,2W0,1W0\n");
  EXPECT_EQ(to_csv(make_schedule("simple", 1, 1)), "0F0,0B0\n");
}

TEST(ScheduleCsv, ComesBackTheSame) {
  for (const std::string& name : schedule_names(0)) {
    for (const int each : {1, 2, 3}) {
      if (std::ranges::count(schedule_names(each), name) == 0) continue;
      for (const int ranks : {1, 2, 3, 4}) {
        for (const int microbatches : {1, 2, 5, 8}) {
          const Schedule schedule = make_schedule(name, ranks * each, microbatches, each);
          Schedule read = schedule_from_csv(to_csv(schedule), "table");
          // Stages that go round need no positions.
          if (read.positions.empty()) {
            for (int s = 0; s < ranks * each; ++s) EXPECT_EQ(schedule.rank_of(s), s % ranks);
            read.positions = schedule.positions;
          }
          EXPECT_EQ(read, schedule)
              << name << " " << ranks << " x " << each << ", " << microbatches;
        }
      }
    }
  }
}

// Tables that torch 2.15 writes: rows end with \r\n.
TEST(ScheduleCsv, ReadsTablesOfTorch) {
  const Schedule interleaved = schedule_from_csv(
      "0F0,0F1,2F0,2F1,,,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,,2B2,,2B3,,0B2,,0B3\r\n"
      ",1F0,1F1,,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,,1B2,,1B3\r\n",
      "ScheduleInterleaved1F1B");
  EXPECT_EQ(interleaved, make_schedule("interleaved", 4, 4, 2));
  const Schedule v_shape = schedule_from_csv(
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,0W2,"
      "0I3,0W3\r\n"
      ",1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,"
      "2W3,1W3\r\n",
      "ScheduleZBVZeroBubble");
  EXPECT_EQ(v_shape.positions, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(v_shape.num_microbatches, 4);
}

TEST(ScheduleCsv, SpacesEmptyCellsAndLinesAreNothing) {
  const Schedule expected = make_schedule("simple", 2, 1);
  EXPECT_EQ(schedule_from_csv("\xEF\xBB\xBF 0F0 , ,,0B0\n,1F0\t,1B0,,\n\n,,\n", "x"), expected);
  EXPECT_EQ(schedule_from_csv("0F0,0B0\n1F0,1B0", "x"), expected);
}

std::string refusal(std::string_view text) {
  try {
    schedule_from_csv(text, "own.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return std::string(error.message());
  }
  return "";
}

TEST(ScheduleCsv, TheBadCellIsMarked) {
  EXPECT_EQ(refusal("0F0,0F1,,0B0,,0B1\n,1F0,1B1,1F1,1B0\n"),
            "own.csv, row 2, column 3: 1B1: its forward has not run\n"
            "row 1 | 0F0 0F1 ... 0B0 ... 0B1\n"
            "row 2 | ... 1F0 1B1 1F1 1B0\n"
            "      |         ^^^");
  EXPECT_EQ(refusal("0F0,0F1\n1F0,1B0,1F1,1B1\n"),
            "own.csv, row 1, column 3: the rank ends without 0B0\n"
            "row 1 | 0F0 0F1\n"
            "      |         ^^^\n"
            "row 2 | 1F0 1B0 1F1 1B1");
  EXPECT_THAT(refusal("0F0,0B0,,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
              HasSubstr("own.csv, row 1, column 2: rank 0 waits at 0B0 for backward 0 of stage 1; "
                        "rank 1 waits at 1F1 for forward 1 of stage 0\n"
                        "row 1 | 0F0 0B0 ... 0F1 0B1\n"
                        "      |     ^^^\n"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0,0F0\n"),
              HasSubstr("row 2, column 3: 0F0: stage 0 runs on rank 0\n"));
}

TEST(ScheduleCsv, LongRowsAreShownAroundTheCell) {
  std::string row;
  for (int m = 0; m < 200; ++m) row += "0F" + std::to_string(m) + ",";
  row += "0B1";
  EXPECT_EQ(refusal(row),
            "own.csv, row 1, column 201: 0B1: expected 0B0\n"
            "row 1 | 0F192 0F193 0F194 0F195 0F196 0F197 0F198 0F199 0B1  \n"
            "      |                                                 ^^^^^");
}

TEST(ScheduleCsv, WhatIsNoActionIsNamed) {
  EXPECT_THAT(refusal("0F0,B0\n"), HasSubstr("row 1, column 2: 'B0' is not an action; expected "));
  EXPECT_THAT(refusal("0F0,0SEND_F0\n"), HasSubstr("leave them out (format=\"compute_only\")"));
  EXPECT_THAT(refusal("0F0,0UNSHARD,0B0\n"), HasSubstr("leave them out (format=\"compute_only\")"));
  EXPECT_THAT(refusal("0F0,(0F1;0B0)OVERLAP_F_B\n"), HasSubstr("one after another\nrow 1"));
  EXPECT_THAT(refusal("0F0;0B0\n"), HasSubstr("separate cells by commas"));
  EXPECT_THAT(refusal("0F2147483647,0B0\n"), HasSubstr("column 1: the table has too few cells"));
  EXPECT_THAT(refusal("0F99999999999,0B0\n"), HasSubstr("is not an action"));
  EXPECT_EQ(refusal("\n,,\n"), "own.csv: it is empty; expected a row of actions for each rank");
  EXPECT_EQ(refusal("0F0,0B0\n\n1F0,1B0\n"),
            "own.csv: row 2 has no action; each rank needs a stage");
  EXPECT_EQ(refusal("0F0,0B0,2F0,2B0\n"),
            "own.csv: no cell has stage 1 of the 3; number stages from 0");
}

TEST(ScheduleCsv, FilesOfThatNameAreTables) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("trireme_schedule_" + std::to_string(getpid()) + ".csv");
  const Schedule schedule = make_schedule("zero_bubble", 3, 4);
  save(schedule, path);
  EXPECT_EQ(read_file(path), to_csv(schedule));
  EXPECT_EQ(load_schedule(path), schedule);
  write_file_atomically(path, "0F0,0F0\n");
  try {
    load_schedule(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(path.string() + ", row 1, column 2: 0F0: "));
  }
  std::filesystem::remove(path);
  EXPECT_THROW(save(Schedule{}, path), Error);
}

}  // namespace
}  // namespace trireme::schedule
