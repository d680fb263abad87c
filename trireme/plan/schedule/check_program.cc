#include "trireme/plan/schedule/check_program.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

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
  expect_number("ranks in the schedule", facts.num_positions(), std::ssize(schedule.ranks));
  for (int s = 0; s < facts.num_stages(); ++s) {
    if (schedule.rank_of(s) == facts.positions[s]) continue;
    fail("the schedule runs stage " + std::to_string(s) + " at position " +
         std::to_string(schedule.rank_of(s)) + " of the pipeline, the plan at " +
         std::to_string(facts.positions[s]));
  }
  expect_number("ranks", facts.num_ranks, std::ssize(program.ranks));
}

std::string text_of(const Channel& channel) {
  return "of kind " + std::string(kChannelKindNames[static_cast<std::size_t>(channel.kind)]) +
         ", from stage " + std::to_string(channel.from_stage) + " on rank " +
         std::to_string(channel.from_rank) + " to stage " + std::to_string(channel.to_stage) +
         " on rank " + std::to_string(channel.to_rank) + ", limit " + std::to_string(channel.limit);
}

/// Worked out here once more, not asked of what the program was written from.
void check_channels(const StepProgram& program, const StepFacts& facts) {
  using Path = std::tuple<ChannelKind, int, int>;
  std::map<Path, int> num_items;
  for (const Message& m : facts.messages) ++num_items[Path(m.kind, m.from_stage, m.to_stage)];
  expect_number("channels", std::ssize(num_items) * facts.num_replicas(),
                std::ssize(program.channels));
  std::size_t index = 0;
  for (const auto& [path, num] : num_items) {
    const auto& [kind, from, to] = path;
    for (int replica = 0; replica < facts.num_replicas(); ++replica, ++index) {
      const Channel expected{kind,
                             from,
                             to,
                             facts.rank(from, replica),
                             facts.rank(to, replica),
                             facts.trains() || facts.rank(from, replica) == facts.rank(to, replica)
                                 ? 0
                                 : num * std::max(to - from, facts.round)};
      if (program.channels[index] == expected) continue;
      fail("channel " + std::to_string(index) + " should be " + text_of(expected) + "; it is " +
           text_of(program.channels[index]) + "; channels come by kind, stages, replica");
    }
  }
}

/// RankGroup `index` of `kind` must have the ranks that `rank_of` gives for 0 to size - 1.
template <typename RankOf>
void check_group(const RankGroup& group, GroupKind kind, int index, int size, RankOf rank_of) {
  bool is_right = group.kind == kind && group.index == index &&
                  group.ranks.size() == static_cast<std::size_t>(size);
  for (int i = 0; is_right && i < size; ++i) is_right = group.ranks[i] == rank_of(i);
  if (is_right) return;
  fail("expected the " + std::string(kGroupKindNames[static_cast<std::size_t>(kind)]) + " group " +
       std::to_string(index) + " with its " + std::to_string(size) +
       " ranks in order; groups come by kind and index");
}

void check_groups(const StepProgram& program, const StepFacts& facts) {
  const int p = facts.num_positions(), r = facts.num_replicas();
  expect_number("groups", 1 + p + r, std::ssize(program.groups));
  const auto& groups = program.groups;
  check_group(groups[0], GroupKind::kWorld, 0, p * r,
              [&](int i) { return facts.role.placement[i]; });
  for (int at = 0; at < p; ++at) {
    check_group(groups[1 + at], GroupKind::kData, at, r,
                [&](int i) { return facts.role.placement[at * r + i]; });
  }
  for (int k = 0; k < r; ++k) {
    check_group(groups[1 + p + k], GroupKind::kPipeline, k, p,
                [&](int i) { return facts.role.placement[i * r + k]; });
  }
}

}  // namespace

void check(const StepProgram& program, const Schedule& schedule, const StepFacts& facts) {
  if (facts.trains()) check(schedule);
  check_sizes(program, schedule, facts);
  check_channels(program, facts);
  check_groups(program, facts);
  const ProgramIndex index(program);
  std::set<int> idle;
  for (int rank = 0; rank < facts.num_ranks; ++rank) idle.insert(rank);
  for (int position = 0; position < facts.num_positions(); ++position) {
    for (int replica = 0; replica < facts.num_replicas(); ++replica) {
      internal::RankRules(index, facts, position, replica).check(schedule.ranks[position]);
      idle.erase(facts.rank_at(position, replica));
    }
  }
  for (const int rank : idle) {
    if (program.ranks[rank].empty()) continue;
    fail("rank " + std::to_string(rank) + " is not of the role that trains, but has operations");
  }
  run_rendezvous(program);
}

}  // namespace trireme::schedule
