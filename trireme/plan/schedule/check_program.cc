#include "trireme/plan/schedule/check_program.h"

#include <iterator>
#include <set>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/schedule/operation_text.h"
#include "trireme/plan/schedule/rank_rules.h"
#include "trireme/plan/schedule/rendezvous.h"
#include "trireme/plan/schedule/schedule_check.h"

namespace trireme::schedule {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "step program: " + problem);
}

void expect_number(const std::string& what, std::int64_t expected, std::int64_t actual) {
  if (expected == actual) return;
  fail("expected " + std::to_string(expected) + " " + what + ", got " + std::to_string(actual));
}

void check_sizes(const StepProgram& program, const Schedule& schedule, const StepFacts& facts) {
  expect_number("microbatches", facts.num_microbatches, program.num_microbatches);
  expect_number("microbatches in the schedule", facts.num_microbatches, schedule.num_microbatches);
  expect_number("stages in the schedule", facts.num_stages(), schedule.num_stages);
  expect_number("ranks in the schedule", facts.num_stages(), std::ssize(schedule.ranks));
  expect_number("ranks", facts.num_ranks, std::ssize(program.ranks));
}

std::string text_of(const Channel& channel) {
  return "of kind " + std::string(kChannelKindNames[static_cast<std::size_t>(channel.kind)]) +
         " and lead from stage " + std::to_string(channel.from_stage) + " on rank " +
         std::to_string(channel.from_rank) + " to stage " + std::to_string(channel.to_stage) +
         " on rank " + std::to_string(channel.to_rank) +
         (channel.limit == 0 ? "" : ", limit " + std::to_string(channel.limit));
}

void check_channels(const StepProgram& program, const StepFacts& facts) {
  const std::vector<Channel> expected = channels_of(facts);
  expect_number("channels", std::ssize(expected), std::ssize(program.channels));
  for (std::size_t c = 0; c < expected.size(); ++c) {
    if (program.channels[c] == expected[c]) continue;
    fail("channel " + std::to_string(c) + " should be " + text_of(expected[c]) +
         "; channels come by kind, stages, replica");
  }
}

void check_groups(const StepProgram& program, const StepFacts& facts) {
  const std::vector<Group> expected = groups_of(facts);
  expect_number("groups", std::ssize(expected), std::ssize(program.groups));
  for (std::size_t g = 0; g < expected.size(); ++g) {
    if (program.groups[g] == expected[g]) continue;
    fail("expected the " +
         std::string(kGroupKindNames[static_cast<std::size_t>(expected[g].kind)]) + " group " +
         std::to_string(expected[g].index) + " with its " +
         std::to_string(expected[g].ranks.size()) +
         " ranks in order; groups come by kind and index");
  }
}

}  // namespace

void check(const StepProgram& program, const Schedule& schedule, const StepFacts& facts) {
  if (!facts.num_evaluated) check(schedule);
  check_sizes(program, schedule, facts);
  check_channels(program, facts);
  check_groups(program, facts);
  const ProgramIndex index(program);
  std::set<int> idle;
  for (int rank = 0; rank < facts.num_ranks; ++rank) idle.insert(rank);
  for (int stage = 0; stage < facts.num_stages(); ++stage) {
    for (int replica = 0; replica < facts.num_replicas(); ++replica) {
      internal::RankRules(index, facts, stage, replica).check(schedule.ranks[stage]);
      idle.erase(facts.rank(stage, replica));
    }
  }
  for (const int rank : idle) {
    if (program.ranks[rank].empty()) continue;
    fail("rank " + std::to_string(rank) + " is not of the role that trains, but has operations");
  }
  run_rendezvous(program);
}

}  // namespace trireme::schedule
