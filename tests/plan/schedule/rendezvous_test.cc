#include "trireme/plan/schedule/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/graphs/sample_graphs.h"
#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/operation_text.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;

/// Two stages on ranks 0 and 1 and a world group; operations of each rank `a | b`.
StepProgram parse(const std::vector<std::string>& ranks) {
  StepProgram program{2,
                      {{ChannelKind::kValue, 0, 1, 0, 1}, {ChannelKind::kGradient, 1, 0, 1, 0}},
                      {{GroupKind::kWorld, 0, {0, 1}}, {GroupKind::kData, 0, {0, 1}}},
                      {}};
  const ProgramIndex index(program);
  std::vector<std::vector<Operation>> operations;
  for (const std::string& text : ranks) {
    std::istringstream lines(text);
    std::vector<Operation>& own = operations.emplace_back();
    for (std::string line; std::getline(lines, line, '|');) {
      own.push_back(parse_operation(index, static_cast<int>(operations.size()) - 1, line));
    }
  }
  program.ranks = std::move(operations);
  return program;
}

std::string deadlock(const StepProgram& program) {
  try {
    run_rendezvous(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

std::string deadlock(const std::vector<std::string>& ranks) { return deadlock(parse(ranks)); }

TEST(Rendezvous, SendsDoNotWait) {
  EXPECT_EQ(deadlock({"send v1 m0 0>1|recv g1 m0 1>0", "send g1 m0 1>0|recv v1 m0 0>1"}), "");
}

TEST(Rendezvous, NamesTheCircleOfRanksThatWait) {
  EXPECT_EQ(deadlock({"recv g1 m0 1>0|send v1 m0 0>1", "recv v1 m0 0>1|send g1 m0 1>0"}),
            "step program: ranks wait for ever: rank 0, operation 0 `recv g1 m0 1>0` waits for "
            "rank 1; rank 1, operation 0 `recv v1 m0 0>1` waits for rank 0");
  EXPECT_EQ(deadlock({"exchange", ""}),
            "step program: ranks wait for ever: rank 0, operation 0 `exchange` waits for rank 1; "
            "rank 1 has ended");
  EXPECT_THAT(deadlock({"exchange|send v1 m0 0>1", "recv v1 m0 0>1|exchange"}),
              HasSubstr("rank 0, operation 0 `exchange` waits for rank 1; rank 1, operation 0 "
                        "`recv v1 m0 0>1` waits for rank 0"));
}

TEST(Rendezvous, MessagesMatchInOrder) {
  EXPECT_THAT(
      deadlock({"send v1 m0 0>1|send v2 m0 0>1", "recv v2 m0 0>1|recv v1 m0 0>1"}),
      HasSubstr("rank 1, operation 0 `recv v2 m0 0>1` finds the message of `send v1 m0 0>1` "
                "next on its channel"));
  EXPECT_THAT(deadlock({"send v1 m0 0>1", "recv v1 m1 0>1"}), HasSubstr("finds the message"));
  EXPECT_THAT(deadlock({"send v1 m0 0>1", ""}), HasSubstr("nobody receives `send v1 m0 0>1`"));
}

TEST(Rendezvous, CollectivesMatch) {
  EXPECT_EQ(deadlock({"reduce bucket 1|exchange|join bucket 1|commit",
                      "reduce bucket 1|exchange|join bucket 1|commit"}),
            "");
  EXPECT_THAT(deadlock({"reduce bucket 1", "reduce bucket 2"}),
              HasSubstr("rank 1, operation 0 `reduce bucket 2` meets `reduce bucket 1` of rank 0"));
  EXPECT_THAT(deadlock({"reduce bucket 1|commit", "commit|reduce bucket 1"}), HasSubstr("meets"));
  EXPECT_THAT(deadlock({"join bucket 1", ""}), HasSubstr("joins what was not reduced"));
}

// A reduction runs beside the backward and the messages after it; only who joins it waits.
TEST(Rendezvous, ReductionsWaitWhereTheyAreJoined) {
  EXPECT_EQ(deadlock({"reduce bucket 1|recv g1 m0 1>0|join bucket 1",
                      "send g1 m0 1>0|reduce bucket 1|join bucket 1"}),
            "");
  EXPECT_EQ(deadlock({"reduce bucket 1|join bucket 1|send v1 m0 0>1",
                      "recv v1 m0 0>1|reduce bucket 1|join bucket 1"}),
            "step program: ranks wait for ever: rank 0, operation 1 `join bucket 1` waits for "
            "rank 1; rank 1, operation 0 `recv v1 m0 0>1` waits for rank 0");
}

TEST(Rendezvous, ChannelsAndGroupsAreTheRanks) {
  StepProgram program = parse({"send v1 m0 0>1|exchange", "recv v1 m0 0>1|exchange"});
  const auto change = [&](auto what) {
    StepProgram changed = program;
    what(changed);
    return deadlock(changed);
  };
  using P = StepProgram&;
  EXPECT_THAT(change([](P p) { p.ranks[0][0].channel = 2; }), HasSubstr("has no such channel"));
  EXPECT_THAT(change([](P p) { p.ranks[0][0].channel = 1; }),
              HasSubstr("is over a channel whose end is rank 1"));
  EXPECT_THAT(change([](P p) { p.ranks[0][1].group = -1; }), HasSubstr("has no such group"));
  EXPECT_THAT(change([](P p) { p.groups[0].ranks = {1}; }), HasSubstr("that the rank is not in"));
  EXPECT_THAT(change([](P p) { p.groups[0].ranks = {0, 0}; }), HasSubstr("repeats ranks"));
  EXPECT_THAT(change([](P p) { p.groups[0].ranks = {0, 2}; }), HasSubstr("repeats ranks or has"));
  EXPECT_THAT(change([](P p) { p.channels[0].to_rank = 2; }), HasSubstr("ends at no rank"));
  EXPECT_EQ(deadlock(StepProgram{}), "");
}

// A stage runs ahead of the next one by what its schedule lets it: simple by all m microbatches,
// interleaved by min(m, p - s). Gradients are taken as soon as a rank gets to them.
TEST(MostHeld, IsHowFarAStageRunsAhead) {
  const graph::Graph graph = graph::testing::make_mlp();
  const auto held = [&](const std::string& schedule) {
    return most_held(
        testing::make_case(graph, {.cuts = {1, 2, 3}, .schedule = schedule, .microbatches = 8})
            .program);
  };
  // Values 0>1, 1>2, 2>3, gradients 1>0, 2>1, 3>2.
  EXPECT_EQ(held("simple"), (std::vector<int>{8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(held("interleaved"), (std::vector<int>{4, 3, 2, 4, 3, 2}));
}

}  // namespace
}  // namespace trireme::schedule
