#include "trireme/plan/schedule/schedule_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using testing::pick;

/// A schedule from one text per rank, `0F0 0B0`.
Schedule parse(int num_stages, int num_microbatches, const std::vector<std::string>& ranks) {
  Schedule schedule{num_stages, num_microbatches, {}};
  for (const std::string& text : ranks) {
    std::istringstream words(text);
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (std::string word; words >> word;) actions.push_back(parse_action(word));
  }
  return schedule;
}

/// `rank.index problem` of the first flaw; empty where there is none.
std::string flaw(const Schedule& schedule) {
  const std::optional<Flaw> found = find_flaw(schedule);
  if (!found) return "";
  const std::string place = found->cell ? std::to_string(found->cell->rank) + "." +
                                              std::to_string(found->cell->index) + " "
                                        : "";
  return place + found->problem;
}

std::string flaw(int num_stages, int num_microbatches, const std::vector<std::string>& ranks) {
  return flaw(parse(num_stages, num_microbatches, ranks));
}

TEST(ScheduleCheck, AcceptsEveryGeneratedSchedule) {
  for (const std::string& name : schedule_names()) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 17; ++m) EXPECT_EQ(flaw(make_schedule(name, p, m)), "");
    }
  }
  for (const int each : {2, 3, 4}) {
    for (const std::string& name : schedule_names(each)) {
      for (int p = 1; p <= 7; ++p) {
        for (int m = 1; m <= 17; ++m) {
          EXPECT_EQ(flaw(make_schedule(name, each * p, m, each)), "")
              << name << ", " << each << " on each of " << p << ", m=" << m;
        }
      }
    }
  }
}

TEST(ScheduleCheck, StagesStandWhereTheScheduleSays) {
  Schedule schedule = make_schedule("v_half", 4, 2, 2);
  schedule.positions = {0, 1, 0, 1};
  EXPECT_THAT(flaw(schedule), ::testing::HasSubstr("stage 3 runs on rank 1"));
  schedule.positions = {0, 1, 2, 0};
  EXPECT_THAT(flaw(schedule), ::testing::HasSubstr("stand at 3 positions, from 0 to 2"));
  schedule.positions = {0, 1};
  EXPECT_THAT(flaw(schedule), ::testing::HasSubstr("positions of 2 stages, expected 4"));
}

TEST(ScheduleCheck, AcceptsASplitBackwardAndSeveralStagesOnARank) {
  EXPECT_EQ(flaw(1, 2, {"0F0 0F1 0I0 0I1 0W0 0W1"}), "");
  EXPECT_EQ(flaw(1, 2, {"0F0 0B0 0F1 0I1 0W1"}), "");
  EXPECT_EQ(flaw(4, 1, {"0F0 2F0 2B0 0B0", "1F0 3F0 3B0 1B0"}), "");
}

TEST(ScheduleCheck, EachActionBelongsToItsRank) {
  EXPECT_EQ(flaw(2, 1, {"0F0 2F0", ""}), "0.1 2F0: there are 2 stages, from 0");
  EXPECT_EQ(flaw(2, 1, {"0F0 0F1", ""}), "0.1 0F1: there are 1 microbatches, from 0");
  EXPECT_EQ(flaw(2, 1, {"1F0", ""}), "0.0 1F0: stage 1 runs on rank 1");
  EXPECT_EQ(flaw(1, 1, {"0F0 0B0", ""}), "it has 2 ranks for 1 stages; each rank needs one");
  EXPECT_EQ(flaw(1, 1, {}), "it has 0 ranks for 1 stages; each rank needs one");
  EXPECT_EQ(flaw(0, 1, {}), "it needs at least one stage and one microbatch");
}

TEST(ScheduleCheck, EachActionComesOnceInOrder) {
  EXPECT_EQ(flaw(1, 2, {"0F1"}), "0.0 0F1: expected 0F0");
  EXPECT_EQ(flaw(1, 2, {"0F0 0F0"}), "0.1 0F0: expected 0F1");
  EXPECT_EQ(flaw(1, 1, {"0F0 0F0"}), "0.1 0F0: stage 0 has done all of these");
  EXPECT_EQ(flaw(1, 2, {"0F0 0F1 0B1"}), "0.2 0B1: expected 0B0");
  EXPECT_EQ(flaw(1, 2, {"0F0 0I0 0F1 0B1"}), "0.3 0B1: expected 0B0");
  EXPECT_EQ(flaw(1, 1, {"0F0 0I0 0B0"}), "0.2 0B0: stage 0 has done all of these");
  EXPECT_EQ(flaw(1, 1, {"0B0 0F0"}), "0.0 0B0: its forward has not run");
  EXPECT_EQ(flaw(1, 1, {"0F0 0W0 0I0"}), "0.1 0W0: its input part has not run");
  EXPECT_EQ(flaw(1, 2, {"0F0 0F1 0B0"}), "0.3 the rank ends without 0B1");
  EXPECT_EQ(flaw(1, 1, {"0F0 0I0"}), "0.2 the rank ends without 0W0");
  EXPECT_EQ(flaw(2147483647, 2147483647, {""}), "0.0 the rank ends without 0F0");
}

TEST(ScheduleCheck, NamesTheCircleOfRanksThatWait) {
  EXPECT_EQ(flaw(2, 2, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}),
            "0.1 rank 0 waits at 0B0 for backward 0 of stage 1; "
            "rank 1 waits at 1F1 for forward 1 of stage 0");
  EXPECT_EQ(flaw(2, 1, {"1F0 0F0 1B0 0B0"}), "0.0 rank 0 waits at 1F0 for forward 0 of stage 0");
}

TEST(ScheduleCheck, PrintsAGridWithTheCellMarked) {
  try {
    check(parse(2, 2, {"0F0 0F1 0B1 0B0", "1F0 1B0 1F1 1B1"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(error.message(),
              "schedule: rank 0, action 2: 0B1: expected 0B0\n"
              "rank 0 | F0 F1 .. .. .. .. .. B1--- B0---\n"
              "       |                      ^^\n"
              "rank 1 | .. F0 B0--- F1 B1--- .. .. .. ..\n");
  }
  EXPECT_NO_THROW(check(make_schedule("simple", 3, 4)));
}

/// Whether the order of `schedule`, whose ranks have the right actions, is one that can be run:
/// told by looking for a circle in the graph of what comes before what.
class OrderOracle {
 public:
  explicit OrderOracle(const Schedule& schedule) {
    for (const auto& actions : schedule.ranks) {
      for (std::size_t i = 1; i < actions.size(); ++i)
        before_[actions[i]].push_back(actions[i - 1]);
    }
    const auto is_weight = [](const Action& action) {
      return action.kind == ActionKind::kBackwardWeight;
    };
    const auto& first = schedule.ranks[0];
    const bool splits = std::any_of(first.begin(), first.end(), is_weight);
    const ActionKind back = splits ? ActionKind::kBackwardInput : ActionKind::kBackward;
    for (int s = 0; s < schedule.num_stages; ++s) {
      for (int m = 0; m < schedule.num_microbatches; ++m) {
        const Action forward{ActionKind::kForward, s, m}, backward{back, s, m};
        const Action weights{ActionKind::kBackwardWeight, s, m};
        before_[backward].push_back(forward);
        if (s > 0) before_[forward].push_back({ActionKind::kForward, s - 1, m});
        if (s > 0) before_[{back, s - 1, m}].push_back(backward);
        if (m > 0) before_[forward].push_back({ActionKind::kForward, s, m - 1});
        if (m > 0) before_[backward].push_back({back, s, m - 1});
        if (splits) before_[weights].push_back(backward);
        if (splits && m > 0) before_[weights].push_back({ActionKind::kBackwardWeight, s, m - 1});
      }
    }
  }

  bool can_run() {
    for (const auto& [action, unused] : before_) {
      if (!visit(action)) return false;
    }
    return true;
  }

 private:
  enum class State { kNew, kOpen, kDone };

  bool visit(const Action& action) {
    if (states_[action] != State::kNew) return states_[action] == State::kDone;
    states_[action] = State::kOpen;
    for (const Action& earlier : before_[action]) {
      if (!visit(earlier)) return false;
    }
    states_[action] = State::kDone;
    return true;
  }

  std::map<Action, std::vector<Action>> before_;
  std::map<Action, State> states_;
};

/// A random number below `count`.
TEST(ScheduleCheck, AcceptsAnExchangeOfTwoActionsExactlyWhereItCanRun) {
  const unsigned seed = 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string name = schedule_names()[pick(random, schedule_names().size())];
    Schedule schedule = make_schedule(name, 1 + pick(random, 4), 2 + pick(random, 4));
    std::vector<Action>& actions = schedule.ranks[pick(random, schedule.ranks.size())];
    // Neighbours often may change places, others hardly ever.
    const int a = pick(random, actions.size() - 1);
    const int b = pick(random, 2) == 0 ? a + 1 : pick(random, actions.size());
    std::swap(actions[a], actions[b]);
    const bool can_run = OrderOracle(schedule).can_run();
    EXPECT_EQ(flaw(schedule).empty(), can_run) << i << ": " << name << "\n" << grid(schedule);
    num_accepted += can_run;
  }
  EXPECT_GT(num_accepted, 100);
  EXPECT_LT(num_accepted, 4000);
}

/// Changes that no schedule survives.
void damage(Schedule& schedule, std::mt19937& random) {
  const int rank = pick(random, schedule.ranks.size());
  std::vector<Action>& actions = schedule.ranks[rank];
  const int i = pick(random, actions.size());
  switch (pick(random, 6)) {
    case 0:
      actions.erase(actions.begin() + i);
      break;
    case 1:
      actions.insert(actions.begin() + pick(random, actions.size() + 1), Action(actions[i]));
      break;
    case 2:
      actions[i].microbatch += 1 + pick(random, 3);
      break;
    case 3:
      actions[i].stage -= 1 + pick(random, 3);
      break;
    case 4:
      actions[i].kind =
          static_cast<ActionKind>((static_cast<int>(actions[i].kind) + 1 + pick(random, 3)) % 4);
      break;
    default:
      schedule.ranks.push_back(actions);
  }
}

TEST(ScheduleCheck, RejectsEveryDamage) {
  const unsigned seed = 2;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    const std::string name = schedule_names()[pick(random, schedule_names().size())];
    Schedule schedule = make_schedule(name, 1 + pick(random, 4), 1 + pick(random, 5));
    damage(schedule, random);
    EXPECT_THROW(check(schedule), Error) << i << ": " << name << "\n" << grid(schedule);
  }
}

}  // namespace
}  // namespace trireme::schedule
