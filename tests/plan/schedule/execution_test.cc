#include "trireme/plan/schedule/execution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

/// Idle time of each rank between the beginning and the end of the step.
std::vector<std::int64_t> bubbles(const Execution& execution) {
  std::vector<std::int64_t> result;
  for (const std::vector<Span>& spans : execution.ranks) {
    std::int64_t busy = 0;
    for (const Span& span : spans) busy += span.end - span.begin;
    result.push_back(execution.end() - busy);
  }
  return result;
}

// Both: step (m + p - 1)(f + b), bubble (p - 1)(f + b) on every rank.
TEST(Execution, StepAndBubbleAreThoseOfTheFormulas) {
  for (const std::string name : {"simple", "interleaved"}) {
    for (int p = 1; p <= 8; ++p) {
      for (const int m : {1, 2, 3, 4, 7, 8, 16, 33}) {
        for (const auto& [f, b] : {std::pair{1, 2}, {1, 1}, {3, 5}}) {
          const Schedule schedule = make_schedule(name, p, m);
          const Execution execution = execute(schedule, {.forward = f, .backward = b});
          EXPECT_EQ(execution.end(), (m + p - 1) * (f + b)) << name << " p=" << p << " m=" << m;
          for (const std::int64_t bubble : bubbles(execution)) {
            EXPECT_EQ(bubble, (p - 1) * (f + b)) << name << " p=" << p << " m=" << m;
          }
        }
      }
    }
  }
}

// Step m (f + i + w) + (p - 1)(i + max(0, f - w)).
TEST(Execution, AZeroBubbleStepIsThatOfTheFormula) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {p, p + 1, 2 * p, 16, 33}) {
      for (const auto& [f, i, w] : {std::array{1, 1, 1}, {2, 3, 2}, {3, 5, 4}, {1, 2, 4}}) {
        if (m < p) continue;
        const UnitTimes times{.forward = f, .backward_input = i, .backward_weight = w};
        EXPECT_EQ(execute(make_schedule("zero_bubble", p, m), times).end(),
                  m * (f + i + w) + (p - 1) * (i + std::max(0, f - w)))
            << "p=" << p << " m=" << m << " f=" << f << " i=" << i << " w=" << w;
      }
    }
  }
}

// Step m (f + i + w) + (p - 1) f, which is the least: nobody waits but for its first microbatch.
TEST(Execution, AStepOfH2IsTheLeast) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 33}) {
      for (const auto& [f, i, w] : {std::array{1, 1, 1}, {2, 3, 2}, {3, 5, 4}, {1, 2, 4}}) {
        const UnitTimes times{.forward = f, .backward_input = i, .backward_weight = w};
        EXPECT_EQ(execute(make_schedule("zero_bubble_h2", p, m), times).end(),
                  m * (f + i + w) + (p - 1) * f)
            << "p=" << p << " m=" << m << " f=" << f << " i=" << i << " w=" << w;
      }
    }
  }
}

// Of v stages on a rank, m a multiple of p: v m (f + b) + (p - 1)(f + b).
TEST(Execution, SeveralStagesOnARankHaveAShorterBubble) {
  for (const std::string name : {"simple", "interleaved"}) {
    for (const int each : {2, 3}) {
      for (int p = 1; p <= 6; ++p) {
        for (const int m : {p, 2 * p, 4 * p}) {
          const Execution execution =
              execute(make_schedule(name, each * p, m, each), {.forward = 2, .backward = 3});
          EXPECT_EQ(execution.end(), (each * m + p - 1) * 5)
              << name << " v=" << each << " p=" << p << " m=" << m;
        }
      }
    }
  }
}

/// Most stages' microbatches that a rank holds at once, from F until B or W.
int most_held_by(const std::vector<Action>& actions) {
  int held = 0, most = 0;
  for (const Action& action : actions) {
    held += action.kind == ActionKind::kForward;
    most = std::max(most, held);
    held -= action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
  }
  return most;
}

TEST(InFlight, SeveralStagesOnARankHoldWhatTheFormulaSays) {
  for (const int each : {2, 3}) {
    for (int p = 1; p <= 6; ++p) {
      for (const int m : {p, 2 * p, 4 * p}) {
        const Schedule schedule = make_schedule("interleaved", each * p, m, each);
        for (int r = 0; r < p; ++r) {
          EXPECT_EQ(most_held_by(schedule.ranks[r]),
                    std::min(m * each, 2 * (p - r - 1) + (each - 1) * p + 1));
        }
      }
    }
  }
}

// In halves of a rank's stages: v_half p + 2, v_min 2 (p + 4) / 3, and waits of half and two thirds of 6 (p - 1),
// those of interleaved with half as many stages, f = i = w.
TEST(VSchedules, HoldAndWaitAsTheHeaderSays) {
  const UnitTimes times{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (int p = 1; p <= 12; ++p) {
    const int m = 3 * p;
    const auto waits = [&](const std::string& name) {
      return execute(make_schedule(name, 2 * p, m, 2), times).end() - 6 * m;
    };
    const auto most = [&](const std::string& name) {
      int most = 0;
      for (const auto& actions : make_schedule(name, 2 * p, m, 2).ranks) {
        most = std::max(most, most_held_by(actions));
      }
      return most;
    };
    EXPECT_LE(most("v_half"), p + 2) << "p=" << p;
    EXPECT_LE(most("v_min"), 2 * ((p + 4) / 3)) << "p=" << p;
    EXPECT_LE(waits("v_half"), 3.4 * (p - 1)) << "p=" << p;
    EXPECT_LE(waits("v_min"), 4.5 * (p - 1)) << "p=" << p;
  }
}

TEST(Execution, WorkedValuesForFourStagesAndEightMicrobatches) {
  EXPECT_EQ(execute(make_schedule("simple", 4, 8)).end(), 33);
  EXPECT_EQ(execute(make_schedule("interleaved", 4, 8)).end(), 33);
  EXPECT_EQ(most_in_flight(make_schedule("simple", 4, 8)), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(most_in_flight(make_schedule("interleaved", 4, 8)), (std::vector<int>{4, 3, 2, 1}));
}

// simple: m; interleaved: min(m, p - s); zero_bubble: min(m, p); zero_bubble_h2: min(m, 2p - 1).
TEST(InFlight, PeaksAreThoseOfTheFormulas) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {1, 2, 3, 4, 7, 8, 16}) {
      const std::vector<int> simple = most_in_flight(make_schedule("simple", p, m));
      const std::vector<int> interleaved = most_in_flight(make_schedule("interleaved", p, m));
      const std::vector<int> zero_bubble = most_in_flight(make_schedule("zero_bubble", p, m));
      const std::vector<int> h2 = most_in_flight(make_schedule("zero_bubble_h2", p, m));
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(simple[s], m);
        EXPECT_EQ(zero_bubble[s], std::min(m, p)) << "p=" << p << " m=" << m << " s=" << s;
        EXPECT_EQ(h2[s], std::min(m, 2 * p - 1)) << "p=" << p << " m=" << m << " s=" << s;
        EXPECT_EQ(interleaved[s], std::min(m, p - s)) << "p=" << p << " m=" << m << " s=" << s;
      }
    }
  }
}

TEST(Execution, ASplitBackwardGoesOnWithItsInputPart) {
  // Rank 1 does its W late; rank 0 waits only for I.
  Schedule schedule{2, 1, {{}, {}}};
  for (const char* action : {"0F0", "0B0"}) schedule.ranks[0].push_back(parse_action(action));
  for (const char* action : {"1F0", "1I0", "1W0"})
    schedule.ranks[1].push_back(parse_action(action));
  const Execution execution = execute(schedule);
  EXPECT_EQ(execution.ranks[0], (std::vector<Span>{{0, 1}, {3, 5}}));
  EXPECT_EQ(execution.ranks[1], (std::vector<Span>{{1, 2}, {2, 3}, {3, 4}}));
}

TEST(Execution, ARankThatWaitsForEverHasFewerSpans) {
  Schedule schedule{2, 1, {{}, {}}};
  for (const char* action : {"0F0", "0B0"}) schedule.ranks[0].push_back(parse_action(action));
  const Execution execution = execute(schedule);
  EXPECT_EQ(execution.ranks[0].size(), 1U);
  EXPECT_EQ(execution.end(), 1);
}

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
