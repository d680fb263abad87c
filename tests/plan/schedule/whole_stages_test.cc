#include "trireme/plan/schedule/whole_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

/// Moves as letters with stages, between the actions: `u0 u1 w0 | 0F0 0F1 | r0`.
std::string move_picture(const std::vector<Action>& actions) {
  const std::vector<ValueMoves> moves = value_moves(actions);
  std::string text;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    std::string words;
    for (const int stage : moves[i].reshard) words += " r" + std::to_string(stage);
    for (const int stage : moves[i].unshard) words += " u" + std::to_string(stage);
    for (const int stage : moves[i].await) words += " w" + std::to_string(stage);
    if (!words.empty()) text += (i == 0 ? "" : " |") + words + (i < actions.size() ? " |" : "");
    if (i < actions.size()) text += " " + to_text(actions[i]);
  }
  return text.substr(1);
}

TEST(WholeStages, OfBreadthFirst) {
  EXPECT_EQ(move_picture(make_simple(3, 2, 3).ranks[0]),
            "u0 u1 w0 | 0F0 0F1 | r0 u2 w1 | 1F0 1F1 | w2 | 2F0 2F1 2B0 2B1 | r2 u0 | 1B0 1B1 | "
            "r1 w0 | 0B0 0B1 | r0");
}

// Of two stages in turn each stays while the other one runs.
TEST(WholeStages, OfInterleaved) {
  EXPECT_EQ(move_picture(make_interleaved(4, 4, 2).ranks[0]),
            "u0 u2 w0 | 0F0 0F1 | w2 | 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 | r2 | "
            "0B2 0B3 | r0");
  EXPECT_EQ(move_picture(make_interleaved(4, 2, 2).ranks[1]),
            "u1 u3 w1 | 1F0 1F1 | w3 | 3F0 3B0 3F1 3B1 | r3 | 1B0 1B1 | r1");
}

TEST(WholeStages, OfOneStageAndOfNone) {
  EXPECT_EQ(move_picture(make_simple(1, 2).ranks[0]), "u0 w0 | 0F0 0F1 0B0 0B1 | r0");
  EXPECT_EQ(value_moves({}), std::vector<ValueMoves>(1));
}

/// What is whole or on its way after each of random actions; checks what no schedule may break.
TEST(WholeStages, ThatOfTheActionIsWholeAndNoMoreThanTwoAreHeld) {
  std::mt19937 random(8);
  for (int i = 0; i < 300; ++i) {
    std::vector<Action> actions(testing::pick(random, 30));
    for (Action& action : actions) action.stage = testing::pick(random, 1 + i % 5);
    const std::vector<ValueMoves> moves = value_moves(actions);
    std::set<int> held, whole;
    for (std::size_t place = 0; place <= actions.size(); ++place) {
      for (const int stage : moves[place].reshard) {
        EXPECT_EQ(held.erase(stage) + whole.erase(stage), 2U);
      }
      for (const int stage : moves[place].unshard) EXPECT_TRUE(held.insert(stage).second);
      for (const int stage : moves[place].await) {
        EXPECT_TRUE(held.contains(stage));
        EXPECT_TRUE(whole.insert(stage).second);
      }
      EXPECT_LE(held.size(), 2U);
      EXPECT_TRUE(place == actions.size() || whole.contains(actions[place].stage));
    }
    EXPECT_TRUE(held.empty());
  }
}

}  // namespace
}  // namespace trireme::schedule
