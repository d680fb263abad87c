#include "trireme/plan/schedule/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/schedule_check.h"

namespace trireme::schedule {
namespace {

using trireme::test::error_of;

/// A rank's actions as one line, `0F0 2F0 2B0`.
std::string stages_line(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : " ") + to_text(action);
  return text;
}

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

TEST(ZeroBubbleH2, ReadsAsThePictureInTheHeader) {
  const Schedule schedule = make_schedule("zero_bubble_h2", 2, 4);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

TEST(Simple, WithSeveralStagesOnARankRunsOneAfterAnother) {
  const Schedule schedule = make_schedule("simple", 4, 2, 2);
  EXPECT_EQ(stages_line(schedule.ranks[0]), "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(stages_line(schedule.ranks[1]), "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1");
}

// Megatron's order for two ranks with two stages each.
TEST(Interleaved, WithSeveralStagesOnARankGoesRoundThem) {
  const Schedule schedule = make_schedule("interleaved", 4, 4, 2);
  EXPECT_EQ(stages_line(schedule.ranks[0]),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(stages_line(schedule.ranks[1]),
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
}

TEST(VSchedules, GoDownTheRanksAndUpAgain) {
  const Schedule schedule = make_schedule("v_half", 4, 1, 2);
  EXPECT_EQ(schedule.positions, (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(stages_line(schedule.ranks[0]), "0F0 3F0 3I0 3W0 0I0 0W0");
  EXPECT_EQ(stages_line(schedule.ranks[1]), "1F0 2F0 2I0 1I0 2W0 1W0");
}

TEST(Schedules, EveryNameIsMade) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(schedule_names(), (Names{"simple", "interleaved", "zero_bubble", "zero_bubble_h2"}));
  EXPECT_EQ(schedule_names(2), (Names{"simple", "interleaved", "zero_bubble", "v_half", "v_min"}));
  EXPECT_EQ(schedule_names(3), (Names{"simple", "interleaved", "zero_bubble"}));
  EXPECT_TRUE(splits_backwards(make_schedule("zero_bubble", 2, 2)));
  EXPECT_TRUE(splits_backwards(make_schedule("v_min", 2, 2, 2)));
  EXPECT_FALSE(splits_backwards(make_schedule("interleaved", 2, 2)));
  for (const int each : {1, 2}) {
    for (const std::string& name : schedule_names(each)) {
      const Schedule schedule = make_schedule(name, 6, 5, each);
      EXPECT_EQ(schedule.num_stages, 6);
      EXPECT_EQ(schedule.num_microbatches, 5);
      EXPECT_EQ(std::ssize(schedule.ranks), 6 / each);
      EXPECT_LE(least_stages_per_rank(name), each);
    }
  }
}

layout::Plan plan_of(int num_stages, const std::string& schedule, int stages_per_rank) {
  layout::Plan plan{.batch = {4, 1, 1}, .roles = {layout::Role()}};
  plan.stages.resize(num_stages);
  plan.schedule.name = schedule;
  deal_out_stages(plan, stages_per_rank);
  return plan;
}

TEST(Schedules, APlanHasItsStagesWhereTheScheduleRunsThem) {
  layout::Plan plan = plan_of(4, "v_min", 2);
  EXPECT_EQ(layout::train_role(plan).mesh.pipeline, 2);
  EXPECT_EQ(layout::stages_at(plan, 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(schedule_of(plan), make_schedule("v_min", 4, 4, 2));
  plan.schedule.name = "interleaved";
  EXPECT_THAT(error_of([&] { schedule_of(plan); }).message(),
              ::testing::HasSubstr("stage 2 is at position 1 of the pipeline; the schedule "
                                   "'interleaved' runs it at 0"));
  plan.stages.pop_back();
  EXPECT_THAT(error_of([&] { schedule_of(plan); }).message(),
              ::testing::HasSubstr("3 stages cannot be dealt out to a pipeline of 2 ranks"));
  EXPECT_THAT(error_of([] { make_schedule("v_half", 4, 4, 1); }).message(),
              ::testing::HasSubstr("has 2 stages on every rank, not 1"));
}

TEST(Schedules, OfOnesOwnAreInThePlanAndChecked) {
  layout::Plan plan = plan_of(4, "interleaved", 2);
  const Schedule own = make_schedule("v_half", 4, 4, 2);
  set_schedule(plan, own);
  EXPECT_EQ(plan.schedule.name, "custom");
  EXPECT_EQ(schedule_of(plan), own);
  plan.schedule.actions[0].pop_back();
  EXPECT_THAT(error_of([&] { schedule_of(plan); }).message(),
              ::testing::HasSubstr("ends without 0W3"));
  plan.schedule.name = "simple";
  EXPECT_THAT(error_of([&] { schedule_of(plan); }).message(),
              ::testing::HasSubstr("name it custom"));
  EXPECT_THAT(error_of([&] { set_schedule(plan, make_schedule("simple", 4, 3, 2)); }).message(),
              ::testing::HasSubstr("4 stages and 3 microbatches, the plan has 4 and 4"));
}

// Two stages on two ranks, in the other order.
TEST(Schedules, OfOnesOwnMayStandAnywhere) {
  layout::Plan plan = plan_of(2, "simple", 1);
  Schedule own = make_schedule("interleaved", 2, 4);
  std::swap(own.ranks[0], own.ranks[1]);
  own.positions = {1, 0};
  set_schedule(plan, own);
  EXPECT_EQ(layout::position_of(plan, 0), 1);
  EXPECT_EQ(schedule_of(plan), own);
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
    layout::Plan plan = plan_of(2, "interleaved", 1);
    plan.schedule.parameters = {{"virtual_stages", 2}};
    schedule_of(plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no parameter 'virtual_stages'"));
  }
}

layout::ScheduleChoice with_active(const std::string& name, int active) {
  return {.name = name, .parameters = {{"active_microbatches", active}}};
}

/// Three ranks of which the first holds two instead of three: B0 comes before F2.
TEST(ActiveMicrobatches, ComeFewerBeforeTheFirstBackward) {
  const Schedule schedule = make_schedule(with_active("interleaved", 2), 3, 4);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(line(schedule.ranks[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(ActiveMicrobatches, EndWithTheirWeights) {
  const Schedule schedule = make_schedule(with_active("zero_bubble", 1), 2, 3);
  EXPECT_EQ(line(schedule.ranks[0]), "F0 I0 W0 F1 I1 W1 F2 I2 W2");
  EXPECT_EQ(line(schedule.ranks[1]), "F0 I0 W0 F1 I1 W1 F2 I2 W2");
}

/// Whatever may be active: no more are, what is made runs, and what is refused says how many would do.
TEST(ActiveMicrobatches, AreNeverMore) {
  int num_refused = 0;
  const auto try_one = [&](const std::string& name, int p, int m, int each, int active) {
    try {
      const Schedule schedule = make_schedule(with_active(name, active), each * p, m, each);
      EXPECT_LE(most_active(schedule), active);
      EXPECT_FALSE(find_flaw(schedule).has_value()) << name << ", " << each << " on each of " << p
                                                    << ", m=" << m << ", " << active << " active";
      if (active >= most_active(make_schedule(name, each * p, m, each))) {
        EXPECT_EQ(schedule, make_schedule(name, each * p, m, each));
      }
    } catch (const Error& error) {
      ++num_refused;
      EXPECT_THAT(error.message(),
                  ::testing::HasSubstr("active_microbatches says " + std::to_string(active)));
      const bool may_be_few = each == 1 && name != "simple";
      EXPECT_FALSE(may_be_few) << error.message();
      EXPECT_LT(active, most_active(make_schedule(name, each * p, m, each)));
    }
  };
  for (const int each : {1, 2, 3}) {
    for (const std::string& name : schedule_names(each)) {
      for (int p = 1; p <= 5; ++p) {
        for (const int m : {1, 4, 7, 10}) {
          for (int active = 1; active <= 11; ++active) try_one(name, p, m, each, active);
        }
      }
    }
  }
  EXPECT_GT(num_refused, 100);
}

TEST(ActiveMicrobatches, ARefusalSaysHowManyWouldDo) {
  EXPECT_EQ(error_of([] { make_schedule(with_active("simple", 4), 2, 8); }).message(),
            "the schedule 'simple' of 2 stages and 8 microbatches holds 8 of these on a rank, and "
            "active_microbatches says 4; ask for 8 or more, or take interleaved with one stage a "
            "rank, which does with 1");
  EXPECT_THAT(error_of([] { make_schedule(with_active("interleaved", 0), 2, 8); }).message(),
              ::testing::HasSubstr("a number from 1 on, not 0"));
  layout::Plan plan = plan_of(2, "interleaved", 1);
  plan.schedule = with_active("interleaved", 1);
  EXPECT_EQ(most_active(schedule_of(plan)), 1);
  set_schedule(plan, schedule_of(plan));
  plan.schedule.parameters = {{"active_microbatches", 1}};
  EXPECT_THAT(error_of([&] { schedule_of(plan); }).message(),
              ::testing::HasSubstr("'custom' has no parameter 'active_microbatches'"));
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
