#include "trireme/plan/schedule/check_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/graphs/sample_graphs.h"
#include "tests/plan/schedule/step_cases.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/rendezvous.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;
using testing::make_case;
using testing::make_random_case;
using testing::pick;
using testing::StepCase;

std::string complaint(const StepCase& step) {
  try {
    check(step.program, step.schedule, step.facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

/// The complaint about three stages with a skip and a tie, two replicas, after `change`.
std::string complaint(const std::function<void(StepCase&)>& change) {
  StepCase step =
      make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}, .replicas = 2, .has_norm = true});
  change(step);
  return complaint(step);
}

TEST(ProgramCheck, AcceptsEveryGeneratedProgram) {
  const unsigned seed = 4;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(complaint(make_random_case(random)), "") << i;
}

TEST(ProgramCheck, SaysWhereWhatAndByWhichRule) {
  EXPECT_EQ(complaint([](StepCase& s) { std::swap(s.program.ranks[0][1], s.program.ranks[0][2]); }),
            "step program: rank 0, operation 1: expected `send v3 m0 0>1`, got `send v3 m0 0>2`; "
            "after an action stand its sends, by channel and item");
  EXPECT_EQ(
      complaint([](StepCase& s) { s.program.ranks[5].pop_back(); }),
      "step program: rank 5, operation 20: expected `recv parameter 0 0>2`, got the end; the "
      "tail is exchange, joins, tie gradients, tie sum, norm where there is one, commit, update, "
      "gathers where state is sharded, tie values");
  EXPECT_EQ(complaint([](StepCase& s) { s.program.ranks[0].push_back({}); }),
            "step program: rank 0, operation 19: expected the end, got `compute 0F0`; nothing "
            "follows the tail");
  EXPECT_THAT(complaint([](StepCase& s) { s.program.ranks[0][0].item = 7; }),
              HasSubstr("expected `compute 0F0`, got `compute 0F0` (channel -1, group -1, item 7, "
                        "microbatch -1, action 0F0); actions are those of the schedule"));
}

TEST(ProgramCheck, WhatIsInAFileIsAskedForAndFetched) {
  const auto complaint_of = [](const std::function<void(std::vector<Operation>&)>& change) {
    StepCase step =
        make_case(graph::testing::make_mlp(), {.cuts = {2}, .microbatches = 4, .offloads = {0}});
    change(step.program.ranks[0]);
    return complaint(step);
  };
  const auto at = [](std::vector<Operation>& operations, OperationKind kind) {
    return std::ranges::find(operations, kind, &Operation::kind);
  };
  EXPECT_THAT(complaint_of([&](auto& o) { o.erase(at(o, OperationKind::kOffload)); }),
              HasSubstr("expected `offload 0F0`, got `compute 0F1`; a stage that offloads does"));
  EXPECT_THAT(complaint_of([&](auto& o) { o.erase(at(o, OperationKind::kFetch)); }),
              HasSubstr("expected `fetch 0B0`, got `compute 0B0`; what was offloaded is fetched"));
  EXPECT_THAT(complaint_of([&](auto& o) { o.erase(at(o, OperationKind::kPrefetch)); }),
              HasSubstr("expected `prefetch 0B0`, got `compute 0F2`; what is in a file is asked"));
  EXPECT_THAT(complaint_of([&](auto& o) { at(o, OperationKind::kOffload)->action.microbatch = 1; }),
              HasSubstr("expected `offload 0F0`, got `offload 0F1`"));
}

TEST(ProgramCheck, NoStageRunsWithoutItsValues) {
  const auto complaint_of = [](const std::function<void(std::vector<Operation>&)>& change) {
    StepCase step =
        make_case(graph::testing::make_mlp(),
                  {.cuts = {1, 2}, .replicas = 2, .stages_per_rank = 3, .shards_parameters = true});
    for (std::vector<Operation>& operations : step.program.ranks) change(operations);
    return complaint(step);
  };
  const auto without = [&](OperationKind kind) {
    return complaint_of([&](auto& operations) {
      operations.erase(std::ranges::find(operations, kind, &Operation::kind));
    });
  };
  EXPECT_EQ(complaint_of([](auto&) {}), "");
  EXPECT_THAT(without(OperationKind::kUnshard),
              HasSubstr("expected `unshard bucket 0`, got `unshard bucket 1`; the values of an "
                        "action's stage are whole, those of the rank's next stage on their way"));
  EXPECT_THAT(without(OperationKind::kAwait), HasSubstr("expected `await bucket 0`, got"));
  EXPECT_THAT(without(OperationKind::kReshard), HasSubstr("expected `reshard bucket 0`, got"));
  EXPECT_THAT(without(OperationKind::kJoin), HasSubstr("one action after the one that completes"));
}

TEST(ProgramCheck, ChannelsAndGroupsAreThoseOfTheFacts) {
  EXPECT_EQ(complaint([](StepCase& s) { s.program.channels.pop_back(); }),
            "step program: expected 14 channels, got 13");
  EXPECT_EQ(complaint([](StepCase& s) { std::swap(s.program.channels[0], s.program.channels[1]); }),
            "step program: channel 0 should be of kind value, from stage 0 on rank 0 to stage 1 on "
            "rank 2, limit 0; it is of kind value, from stage 0 on rank 1 to stage 1 on rank 3, "
            "limit 0; channels come by kind, stages, replica");
  EXPECT_EQ(complaint([](StepCase& s) { std::swap(s.program.groups[1], s.program.groups[2]); }),
            "step program: expected the data group 0 with its 2 ranks in order; groups come by "
            "kind and index");
  EXPECT_EQ(complaint([](StepCase& s) { s.program.ranks.pop_back(); }),
            "step program: expected 6 ranks, got 5");
  EXPECT_EQ(complaint([](StepCase& s) { s.program.num_microbatches = -1; }),
            "step program: expected 2 microbatches, got -1");
}

TEST(ProgramCheck, TheScheduleFitsAndIsCheckedToo) {
  EXPECT_THAT(complaint([](StepCase& s) { s.schedule = make_schedule("interleaved", 3, 2); }),
              HasSubstr("rank 4, operation 3: expected `compute 2B0`, got `recv v3 m1 0>2`"));
  EXPECT_EQ(complaint([](StepCase& s) { s.schedule = make_schedule("simple", 3, 1); }),
            "step program: expected 2 microbatches in the schedule, got 1");
  EXPECT_EQ(complaint([](StepCase& s) { s.schedule = make_schedule("simple", 2, 2); }),
            "step program: expected 3 stages in the schedule, got 2");
  EXPECT_THAT(complaint([](StepCase& s) { s.schedule.ranks[0].clear(); }),
              HasSubstr("schedule: rank 0, action 0: the rank ends without 0F0"));
}

TEST(ProgramCheck, RanksOfOtherRolesDoNothing) {
  StepCase step = make_case(testing::make_losses(), {});
  step.plan.roles.push_back({"reader", {1, 1, 1}, {1}});
  step.facts = step_facts(step.graph, step.plan, step.map, {});
  step.program.ranks.emplace_back();
  EXPECT_EQ(complaint(step), "");
  step.program.ranks[1].push_back({.kind = OperationKind::kUpdate});
  EXPECT_THAT(complaint(step), HasSubstr("rank 1 is not of the role that trains"));
}

/// A number that is not `old`, near it.
int other(std::mt19937& random, int old) { return old + (pick(random, 2) == 0 ? 1 : -1); }

/// Changes one operation's field.
void change_field(Operation& operation, std::mt19937& random) {
  switch (pick(random, 7)) {
    case 0:
      operation.channel = other(random, operation.channel);
      break;
    case 1:
      operation.group = other(random, operation.group);
      break;
    case 2:
      operation.item = other(random, operation.item);
      break;
    case 3:
      operation.microbatch = other(random, operation.microbatch);
      break;
    case 4:
      operation.action.microbatch = other(random, operation.action.microbatch);
      break;
    case 5:
      operation.action.stage = other(random, operation.action.stage);
      break;
    default:
      operation.kind = static_cast<OperationKind>(
          (static_cast<int>(operation.kind) + 1 + pick(random, kOperations.size() - 1)) %
          kOperations.size());
  }
}

/// Changes a channel or a group; false where there is none to change.
bool change_table(StepProgram& program, std::mt19937& random) {
  if (pick(random, 2) == 0) {
    RankGroup& group = program.groups[pick(random, program.groups.size())];
    const int i = pick(random, group.ranks.size());
    group.ranks[i] = other(random, group.ranks[i]);
    return true;
  }
  if (program.channels.empty()) return false;
  Channel& channel = program.channels[pick(random, program.channels.size())];
  int* const fields[] = {&channel.from_rank, &channel.to_rank, &channel.from_stage,
                         &channel.to_stage};
  int& field = *fields[pick(random, 4)];
  field = other(random, field);
  return true;
}

/// Makes one change that no valid program survives; says which. Empty where it made none.
std::string mutate(StepProgram& program, std::mt19937& random) {
  const int rank = pick(random, program.ranks.size());
  std::vector<Operation>& operations = program.ranks[rank];
  if (operations.empty()) return "";
  const int i = pick(random, operations.size());
  const int j = pick(random, operations.size());
  const std::string where = " rank " + std::to_string(rank) + ", " + std::to_string(i);
  switch (pick(random, 5)) {
    case 0:
      if (operations[i] == operations[j]) return "";
      std::swap(operations[i], operations[j]);
      return "swap" + where + " and " + std::to_string(j);
    case 1:
      operations.erase(operations.begin() + i);
      return "drop" + where;
    case 2:
      operations.insert(operations.begin() + j, Operation(operations[i]));
      return "duplicate" + where + " to " + std::to_string(j);
    case 3:
      change_field(operations[i], random);
      return "change" + where;
    default:
      return change_table(program, random) ? "channel or group" : "";
  }
}

TEST(ProgramCheck, RejectsEveryMutation) {
  const unsigned seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_mutations = 0;
  for (int i = 0; i < 200; ++i) {
    StepCase step = make_random_case(random);
    const StepProgram valid = step.program;
    for (int k = 0; k < 25; ++k) {
      step.program = valid;
      const std::string change = mutate(step.program, random);
      if (change.empty()) continue;
      ++num_mutations;
      EXPECT_NE(complaint(step), "") << "case " << i << ", " << change;
    }
  }
  EXPECT_GT(num_mutations, 4000);
}

// The execution alone also ends, with a verdict, whatever the program.
TEST(ProgramCheck, TheExecutionIsSafeForAnyProgram) {
  const unsigned seed = 6;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_rejected = 0;
  for (int i = 0; i < 300; ++i) {
    StepCase step = make_random_case(random);
    for (int k = pick(random, 4); k >= 0; --k) mutate(step.program, random);
    try {
      run_rendezvous(step.program);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      ++num_rejected;
    }
  }
  EXPECT_GT(num_rejected, 150);
}

}  // namespace
}  // namespace trireme::schedule
