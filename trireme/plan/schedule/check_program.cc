#include "trireme/plan/schedule/check_program.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

/// Ranks of a position, by replica.
std::vector<int> ranks_by_replica(const StepFacts& facts, int position) {
  const auto first = facts.role.placement.begin() + std::ptrdiff_t{position} * facts.role.mesh.data;
  return {first, first + facts.role.mesh.data};
}

/// Worked out here once more, not asked of what the program was written from. What is shared of a parameter comes to a rank
/// once, from the rank that runs its first replica.
std::vector<Channel> expected_channels(const StepFacts& facts) {
  using Path = std::tuple<ChannelKind, int, int>;
  std::map<Path, int> num_items;
  for (const Message& m : facts.messages) ++num_items[Path(m.kind, m.from_stage, m.to_stage)];
  std::vector<Channel> channels;
  for (const auto& [path, num] : num_items) {
    const auto& [kind, from, to] = path;
    const std::vector<int> senders = ranks_by_replica(facts, facts.positions[from]);
    const std::vector<int> takers = ranks_by_replica(facts, facts.positions[to]);
    std::set<int> served;
    for (std::size_t r = 0; r < takers.size(); ++r) {
      if (!served.insert(takers[r]).second && !has_microbatch(kind)) continue;
      const bool is_bounded = !facts.trains() && senders[r] != takers[r];
      channels.push_back({kind, from, to, senders[r], takers[r],
                          is_bounded ? num * std::max(to - from, facts.round) : 0});
    }
  }
  return channels;
}

void check_channels(const StepProgram& program, const StepFacts& facts) {
  const std::vector<Channel> expected = expected_channels(facts);
  expect_number("channels", std::ssize(expected), std::ssize(program.channels));
  for (std::size_t index = 0; index < expected.size(); ++index) {
    if (program.channels[index] == expected[index]) continue;
    fail("channel " + std::to_string(index) + " should be " + text_of(expected[index]) +
         "; it is " + text_of(program.channels[index]) +
         "; channels come by kind, stages, replica");
  }
}

void check_group(const RankGroup& group, GroupKind kind, int index, const std::vector<int>& ranks) {
  if (group == RankGroup{kind, index, ranks}) return;
  fail("expected the " + std::string(kGroupKindNames[static_cast<std::size_t>(kind)]) + " group " +
       std::to_string(index) + " with its " + std::to_string(ranks.size()) +
       " ranks in order; groups come by kind and index");
}

/// Adds ranks that are not there yet.
void join(std::vector<int>& ranks, const std::vector<int>& more) {
  for (const int rank : more) {
    if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
  }
}

/// By pipeline its ranks. Where no rank runs replicas on both sides of an edge, a new pipeline begins.
std::vector<std::vector<int>> expected_pipelines(const StepFacts& facts) {
  std::vector<std::vector<int>> by_position;
  for (int p = 0; p < facts.num_positions(); ++p) by_position.push_back(ranks_by_replica(facts, p));
  std::vector<std::vector<int>> pipelines;
  for (int begin = 0, end = 1; end <= facts.num_replicas(); ++end) {
    const bool is_edge = std::ranges::all_of(by_position, [&](const std::vector<int>& ranks) {
      return end == facts.num_replicas() || ranks[end - 1] != ranks[end];
    });
    if (!is_edge) continue;
    pipelines.emplace_back();
    for (const std::vector<int>& ranks : by_position) {
      join(pipelines.back(), {ranks.begin() + begin, ranks.begin() + end});
    }
    begin = end;
  }
  return pipelines;
}

void check_groups(const StepProgram& program, const StepFacts& facts) {
  const std::vector<std::vector<int>> pipelines = expected_pipelines(facts);
  const int p = facts.num_positions();
  expect_number("groups", 1 + p + std::ssize(pipelines), std::ssize(program.groups));
  std::vector<int> world;
  for (int at = 0; at < p; ++at) {
    std::vector<int> ranks;
    join(ranks, ranks_by_replica(facts, at));
    check_group(program.groups[1 + at], GroupKind::kData, at, ranks);
    join(world, ranks);
  }
  check_group(program.groups[0], GroupKind::kWorld, 0, world);
  for (int k = 0; k < std::ssize(pipelines); ++k) {
    check_group(program.groups[1 + p + k], GroupKind::kPipeline, k, pipelines[k]);
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
      if (idle.erase(facts.rank_at(position, replica)) == 0) continue;  // With an earlier replica.
      internal::RankRules(index, facts, position, replica).check(schedule.ranks[position]);
    }
  }
  for (const int rank : idle) {
    if (program.ranks[rank].empty()) continue;
    fail("rank " + std::to_string(rank) + " is not of the role that trains, but has operations");
  }
  run_rendezvous(program);
}

}  // namespace trireme::schedule
