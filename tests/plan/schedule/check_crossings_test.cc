#include "trireme/plan/schedule/check_crossings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/check_program.h"

namespace trireme::schedule {
namespace {

using testing::make_case;
using testing::StepCase;

std::string crossing_complaint(const StepCase& step) {
  try {
    check_crossings(step.program, step.graph, step.plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

StepCase two_replicas() {
  return make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}, .replicas = 2});
}

TEST(CheckCrossings, AcceptsEveryGeneratedProgram) {
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(crossing_complaint(testing::make_random_case(random)), "") << i << ", seed 9";
  }
}

/// The program without the messages of one kind and value, as if the facts that it was written from
/// had lacked the crossing: valid in itself.
void drop(StepProgram& program, ChannelKind kind, int value) {
  for (auto& operations : program.ranks) {
    std::erase_if(operations, [&](const Operation& operation) {
      return operation.channel >= 0 && program.channels[operation.channel].kind == kind &&
             operation.item == value;
    });
  }
}

TEST(CheckCrossings, AMissingCrossingIsNamed) {
  for (const ChannelKind kind : {ChannelKind::kValue, ChannelKind::kGradient}) {
    StepCase step = two_replicas();
    const Message message = *std::find_if(step.facts.messages.begin(), step.facts.messages.end(),
                                          [&](const Message& m) { return m.kind == kind; });
    drop(step.program, kind, message.item);
    EXPECT_THAT(crossing_complaint(step),
                ::testing::HasSubstr("value " + std::to_string(message.item) + " from stage"));
    EXPECT_THAT(crossing_complaint(step), ::testing::HasSubstr(" 0 times for microbatch 0"));
  }
}

/// Facts that lack a crossing make a program that agrees with them.
TEST(CheckCrossings, SeesWhatTheFactsLack) {
  StepCase step = two_replicas();
  const Message lost = step.facts.messages.front();
  ASSERT_EQ(lost.kind, ChannelKind::kValue);
  const auto is_lost = [&](const Message& m) { return m.item == lost.item && m.kind == lost.kind; };
  std::erase_if(step.facts.messages, is_lost);
  for (StageFacts& stage : step.facts.stages) {
    for (auto* lists : {&stage.sends, &stage.recvs}) {
      for (auto& messages : *lists) std::erase_if(messages, is_lost);
    }
  }
  drop(step.program, lost.kind, lost.item);
  std::vector<int> places;  // of the channels that are left
  std::vector<Channel> channels;
  for (const Channel& channel : step.program.channels) {
    const bool is_used =
        std::any_of(step.facts.messages.begin(), step.facts.messages.end(), [&](const Message& m) {
          return m.kind == channel.kind && m.from_stage == channel.from_stage &&
                 m.to_stage == channel.to_stage;
        });
    places.push_back(static_cast<int>(channels.size()));
    if (is_used) channels.push_back(channel);
  }
  for (auto& operations : step.program.ranks) {
    for (Operation& operation : operations) {
      if (operation.channel >= 0) operation.channel = places[operation.channel];
    }
  }
  step.program.channels = channels;
  EXPECT_NO_THROW(check(step.program, step.schedule, step.facts));
  EXPECT_THAT(crossing_complaint(step), ::testing::HasSubstr("0 times"));
}

TEST(CheckCrossings, WhatNobodyNeedsAndWhatComesTwiceIsNamed) {
  StepCase step = two_replicas();
  auto& operations = step.program.ranks[0];
  const auto send = std::find_if(operations.begin(), operations.end(),
                                 [](const Operation& o) { return o.kind == OperationKind::kSend; });
  Operation again = *send;
  operations.insert(send, again);
  EXPECT_THAT(crossing_complaint(step), ::testing::HasSubstr("2 times for microbatch 0"));
  step = two_replicas();
  again.item = 0;
  step.program.ranks[0].push_back(again);
  EXPECT_THAT(crossing_complaint(step), ::testing::HasSubstr("which no node needs"));
}

}  // namespace
}  // namespace trireme::schedule
