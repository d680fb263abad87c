#include "trireme/plan/schedule/causes.h"

#include <gtest/gtest.h>

#include "tests/graphs/sample_graphs.h"
#include "tests/plan/schedule/step_cases.h"
#include "trireme/plan/schedule/rendezvous.h"

namespace trireme::schedule {
namespace {

using testing::make_case;
using testing::StepCase;

Causes causes_of(const StepCase& step) { return {step.schedule, step.facts.messages}; }

/// The most microbatches of a channel that are sent and need not have been taken, at any action.
int most_outstanding(const Causes& causes, const Channel& channel) {
  int most = 0;
  const int from = causes.rank_of(channel.from_stage), to = causes.rank_of(channel.to_stage);
  for (int i = 0; i < causes.num_actions(from); ++i) {
    const int done = causes.done_before(to, from, i);
    most = std::max(most, causes.num_taking(channel.from_stage, channel.kind, i + 1) -
                              causes.num_taking(channel.to_stage, channel.kind, done));
  }
  return most;
}

TEST(Causes, AnActionComesAfterAllThatItsMessagesComeAfter) {
  const Causes causes = causes_of(make_case(graph::testing::make_mlp(), {.cuts = {2}}));
  // Stage 0: 0F0 0F1 0B0 0B1, stage 1: 1F0 1F1 1B0 1B1.
  EXPECT_EQ(causes.done_before(1, 0, 1), 0);
  EXPECT_EQ(causes.done_before(1, 0, 2), 3);
  EXPECT_EQ(causes.done_before(1, 0, 3), 4);
  EXPECT_EQ(causes.done_before(0, 1, 0), 1);
  EXPECT_EQ(causes.done_before(0, 1, 2), 2);
  // The backwards of stage 1 need no backward of stage 0: both gradients may be there before 0B0.
  EXPECT_EQ(causes.most_sent(1, ChannelKind::kGradient, 0)[2], 2);
  EXPECT_EQ(causes.most_sent(1, ChannelKind::kGradient, 0)[1], 0);
  EXPECT_EQ(causes.most_sent(0, ChannelKind::kValue, 1)[0], 2);
}

// Two ways to the same number: from the causes of actions, and by running all ranks but one.
TEST(Causes, TellHowManyMessagesPileUpAsRunningTheRanksDoes) {
  const unsigned seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_channels = 0;
  for (int i = 0; i < 300; ++i) {
    const StepCase step = testing::make_random_case(random);
    const Causes causes = causes_of(step);
    const std::vector<int> held = most_held(step.program);
    std::map<std::tuple<ChannelKind, int, int>, int> items;
    for (const Message& m : step.facts.messages) ++items[{m.kind, m.from_stage, m.to_stage}];
    for (std::size_t c = 0; c < held.size(); ++c) {
      const Channel& channel = step.program.channels[c];
      if (channel.kind != ChannelKind::kValue && channel.kind != ChannelKind::kGradient) continue;
      ++num_channels;
      EXPECT_EQ(held[c], most_outstanding(causes, channel) *
                             items.at({channel.kind, channel.from_stage, channel.to_stage}))
          << "case " << i << ", channel " << c;
    }
  }
  EXPECT_GT(num_channels, 500);
}

}  // namespace
}  // namespace trireme::schedule
