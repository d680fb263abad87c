#include "trireme/plan/simulate/held_messages.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"
#include "trireme/plan/schedule/message_limits.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;
using schedule::kMessageHeaderBytes;

/// Messages held in each action and after it, by stage, of two stages with a value of 10 elements.
std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> held(const std::string& schedule,
                                                                     int microbatches) {
  const auto model = make_chain({{1, 1, 1, 10}, {1, 1, 1, 20}});
  const layout::Plan plan = make_plan(model.graph, {{1}, microbatches, 1, schedule});
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> result;
  for (const auto& stage : held_messages(model.graph, plan)) {
    auto& numbers = result.emplace_back();
    for (const HeldMessages& held : stage) {
      numbers.emplace_back(held.during / (kMessageHeaderBytes + 40),
                           held.after / (kMessageHeaderBytes + 40));
    }
  }
  return result;
}

// A slow stage 1 leaves all values with stage 0, a slow stage 0 all gradients with stage 1; two more
// come ahead. A message that an action waits for is the third.
TEST(HeldMessages, PileUpBeforeASlowStage) {
  const auto simple = held("simple", 3);
  // 0F0 0F1 0F2 0B0 0B1 0B2. In 0B0 the first gradient has come, so stage 1 has taken all values.
  EXPECT_EQ(simple[0], (std::vector<std::pair<std::int64_t, std::int64_t>>{
                           {0, 1}, {1, 2}, {2, 3 + 3}, {2, 2}, {1, 1}, {0, 0}}));
  // 1F0 1F1 1F2 1B0 1B1 1B2.
  EXPECT_EQ(simple[1], (std::vector<std::pair<std::int64_t, std::int64_t>>{
                           {2, 2}, {1, 1}, {0, 0}, {0, 1}, {1, 2}, {2, 3}}));
}

TEST(HeldMessages, AreAsFewAsTheScheduleLetsPileUp) {
  // 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3.
  const auto interleaved = held("interleaved", 4);
  EXPECT_EQ(
      interleaved[0],
      (std::vector<std::pair<std::int64_t, std::int64_t>>{
          {0, 1 + 1}, {1 + 1, 2 + 2}, {2, 2}, {2, 2 + 2}, {2, 2}, {2, 2 + 2}, {2, 2}, {0, 0}}));
}

TEST(HeldMessages, OneStageHoldsNone) {
  const auto model = make_chain({{1, 1, 1, 10}, {1, 1, 1, 20}});
  const auto stages = held_messages(model.graph, make_plan(model.graph, {{}, 4}));
  for (const HeldMessages& held : stages[0]) {
    EXPECT_EQ(held.during + held.after, 0);
  }
}

}  // namespace
}  // namespace trireme::simulate
