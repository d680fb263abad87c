#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/check_crossings.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/rendezvous.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using testing::make_case;
using testing::picture;
using testing::StepCase;

/// What the checks of an evaluation of `num` microbatches say.
std::string complaint(const StepProgram& program, const StepCase& step, int num) {
  const StepFacts facts = evaluation_facts(step.graph, step.plan, num);
  try {
    check(program, forwards(facts.positions, facts.num_microbatches, facts.round), facts);
    check_crossings(program, step.graph, step.plan, num);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(EvaluationProgram, HasForwardsAndOneExchange) {
  const StepCase step = make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}, .replicas = 2});
  const StepProgram program = make_evaluation_program(step.graph, step.plan, 3);
  EXPECT_EQ(program.num_microbatches, 2);
  // The second replica has the larger half of three; rank = stage * 2 + replica.
  EXPECT_EQ(picture(program, 2), "recv v3 m0 0>1 | compute 1F0 | send v5 m0 1>2 | exchange");
  EXPECT_EQ(picture(program, 3),
            "recv v3 m0 0>1 | compute 1F0 | send v5 m0 1>2 | recv v3 m1 0>1 | compute 1F1 | "
            "send v5 m1 1>2 | exchange");
  EXPECT_EQ(complaint(program, step, 3), "");
}

TEST(EvaluationProgram, EveryOneOfRandomPlansPassesItsChecks) {
  std::mt19937 random(14);
  for (int i = 0; i < 200; ++i) {
    const StepCase step = testing::make_random_case(random);
    const int num = 1 + testing::pick(random, 9);
    const StepProgram program = make_evaluation_program(step.graph, step.plan, num);
    EXPECT_EQ(complaint(program, step, num), "") << i << ", seed 14";
    const std::vector<int> held = most_held(program);
    for (std::size_t c = 0; c < held.size(); ++c) {
      const Channel& channel = program.channels[c];
      if (channel.from_rank == channel.to_rank) continue;
      EXPECT_LE(held[c], channel.limit) << i << ", seed 14, channel " << c;
    }
  }
}

TEST(EvaluationProgram, PartsOfReplicasAreContiguousAndDifferByOne) {
  for (int replicas = 1; replicas <= 5; ++replicas) {
    for (int num = 1; num <= 12; ++num) {
      int next = 0;
      for (int replica = 0; replica < replicas; ++replica) {
        EXPECT_EQ(first_of_part(num, replicas, replica), next);
        const int size = first_of_part(num, replicas, replica + 1) - next;
        EXPECT_TRUE(size == num / replicas || size == (num - 1) / replicas + 1);
        next += size;
      }
      EXPECT_EQ(next, num);
    }
  }
}

// A first stage that ran ahead of the others held the messages of the whole evaluation.
TEST(EvaluationProgram, AFastStageWaitsForRoom) {
  StepCase step = make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}});
  StepProgram program = make_evaluation_program(step.graph, step.plan, 20);
  EXPECT_THAT(most_held(program), ::testing::ElementsAre(1, 2, 1));
  for (Channel& channel : program.channels) channel.limit = 0;
  EXPECT_THAT(most_held(program), ::testing::ElementsAre(20, 20, 20));
  EXPECT_THAT(complaint(program, step, 20), ::testing::HasSubstr("limit 1; it is of kind value"));
}

TEST(EvaluationProgram, ALostOrRepeatedOperationIsRefused) {
  const StepCase step = make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}, .replicas = 2});
  const StepProgram valid = make_evaluation_program(step.graph, step.plan, 5);
  for (std::size_t rank = 0; rank < valid.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < valid.ranks[rank].size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      StepProgram lost = valid, repeated = valid;
      lost.ranks[rank].erase(lost.ranks[rank].begin() + at);
      EXPECT_NE(complaint(lost, step, 5), "") << rank << ", " << i;
      repeated.ranks[rank].insert(repeated.ranks[rank].begin() + at,
                                  Operation(repeated.ranks[rank][i]));
      EXPECT_NE(complaint(repeated, step, 5), "") << rank << ", " << i;
    }
  }
}

TEST(EvaluationProgram, ATrainingsScheduleIsNotOne) {
  const StepCase step = make_case(testing::make_losses(), {.cuts = {2}});
  EXPECT_THROW(check(forwards({0, 1}, 2, 1)), Error);
  EXPECT_THROW(make_evaluation_program(step.graph, step.plan, 0), Error);
}

}  // namespace
}  // namespace trireme::schedule
