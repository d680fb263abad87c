#include "trireme/plan/partition/stage_ways.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "tests/plan/partition/search_cases.h"

namespace trireme::partition {
namespace {

std::set<StageWay> listed(const Problem& problem, const WayRules& rules) {
  const BlockGraph graph(problem.recorded, problem.profile);
  const std::vector<StageWay> ways =
      promising_ways(problem, {"interleaved", {}, problem.recorded}, graph, rules);
  return {ways.begin(), ways.end()};
}

/// By brute force.
int count_ways(const BlockGraph& graph, int num_stages, StageWay& begun) {
  if (begun.size() == graph.blocks().size()) {
    return std::ssize(std::set<int>(begun.begin(), begun.end())) == num_stages ? 1 : 0;
  }
  int first = 0, count = 0;
  for (const int before : graph.blocks()[begun.size()].before) {
    first = std::max(first, begun[before]);
  }
  for (int s = first; s < num_stages; ++s) {
    begun.push_back(s);
    count += count_ways(graph, num_stages, begun);
    begun.pop_back();
  }
  return count;
}

/// All ways are listed where all are asked for; else those of them that promise most, which bounds then leave.
TEST(StageWays, BoundsLeaveOutNoneOfTheBest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    const testing::SearchCase one = testing::random_search_case(random, 9);
    const Problem problem = one.problem();
    const BlockGraph graph(problem.recorded, problem.profile);
    StageWay none;
    const std::set<StageWay> all = listed(problem, {.num_kept = 100'000});
    ASSERT_EQ(std::ssize(all), count_ways(graph, problem.num_stages, none)) << "round " << round;
    std::set<StageWay> before;
    for (const std::size_t num_kept : {1, 4, 16, 64}) {
      const std::set<StageWay> some = listed(problem, {.num_kept = num_kept});
      ASSERT_GE(some.size(), std::min(num_kept, all.size())) << "round " << round;
      EXPECT_TRUE(std::ranges::includes(some, before)) << "round " << round << ", " << num_kept;
      before = some;
    }
    EXPECT_TRUE(std::ranges::includes(all, before)) << "round " << round;
  }
}

/// As many as fit the work that it may take, or none.
TEST(StageWays, AreLimitedByWork) {
  std::mt19937 random(5);
  const testing::SearchCase one = testing::random_search_case(random, 9);
  EXPECT_TRUE(listed(one.problem(), {.most_steps = 1}).empty());
}

}  // namespace
}  // namespace trireme::partition
