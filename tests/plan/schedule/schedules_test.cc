#include "trireme/plan/schedule/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

/// A rank's actions as one line, `F0 F1 B0`; the stage is left out because it is the rank.
std::string line(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    text += (text.empty() ? "" : " ") + to_text(action).substr(1);
  }
  return text;
}

TEST(Simple, RunsAllForwardsFirst) {
  const Schedule schedule = make_schedule("simple", 2, 3);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 F1 F2 B0 B1 B2");
}

TEST(Interleaved, ReadsAsThePictureInTheHeader) {
  const Schedule schedule = make_schedule("interleaved", 3, 4);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(line(schedule.ranks[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(ZeroBubble, ReadsAsThePictureInTheHeader) {
  const Schedule schedule = make_schedule("zero_bubble", 2, 4);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 F1 I0 W0 F2 I1 W1 F3 I2 W2 I3 W3");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3");
}

TEST(Schedules, EveryNameIsMade) {
  EXPECT_EQ(schedule_names(), (std::vector<std::string>{"simple", "interleaved", "zero_bubble"}));
  EXPECT_TRUE(splits_backwards("zero_bubble"));
  EXPECT_FALSE(splits_backwards("interleaved"));
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 3, 5);
    EXPECT_EQ(schedule.num_stages, 3);
    EXPECT_EQ(schedule.num_microbatches, 5);
    EXPECT_EQ(schedule.ranks.size(), 3U);
    EXPECT_EQ(make_schedule(layout::ScheduleChoice{name, {}}, 3, 5), schedule);
  }
}

TEST(Schedules, AnUnknownNameListsTheKnown) {
  try {
    make_schedule("gpipe", 2, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no schedule 'gpipe'"));
    EXPECT_THAT(error.message(), ::testing::HasSubstr("simple, interleaved, zero_bubble"));
  }
}

TEST(Schedules, RefuseParametersThatTheyDoNotHave) {
  try {
    make_schedule(layout::ScheduleChoice{"interleaved", {{"virtual_stages", 2}}}, 2, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no parameter 'virtual_stages'"));
  }
}

TEST(Schedules, RefuseNothingToSchedule) {
  for (const std::string& name : schedule_names()) {
    for (auto [stages, microbatches] : {std::pair{0, 1}, {1, 0}, {-2, 4}}) {
      try {
        make_schedule(name, stages, microbatches);
        FAIL() << "accepted " << stages << " stages, " << microbatches << " microbatches";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      }
    }
  }
}

}  // namespace
}  // namespace trireme::schedule
