#include "trireme/plan/partition/stage_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/plan/partition/search_cases.h"

namespace trireme::partition {
namespace {

using ::testing::DoubleNear, ::testing::Pointwise;

std::vector<StageWay> listed(const Problem& problem, const WayRules& rules) {
  const BlockGraph graph(problem.recorded, problem.profile);
  return promising_ways(problem, {"interleaved", {}, problem.recorded}, graph, rules);
}

/// What the way promises by work alone, where backwards are not split.
double promise_us(const Problem& problem, const BlockGraph& graph, const StageWay& way) {
  std::vector<double> work_us(problem.num_stages), lead_us(problem.num_stages);
  for (std::size_t b = 0; b < way.size(); ++b) {
    work_us[way[b]] += graph.blocks()[b].work_us / problem.most_speed(way[b]);
  }
  double most_us = 0;
  for (int s = 0; s < problem.num_stages; ++s) {
    for (std::size_t b = 0; b < way.size(); ++b) {
      for (const int fed : graph.blocks()[b].feeds) {
        if (way[fed] != s || way[b] == s) continue;
        lead_us[s] = std::max(lead_us[s], lead_us[way[b]] + work_us[way[b]]);
      }
    }
    const auto m = static_cast<double>(problem.num_microbatches());
    most_us = std::max(most_us, lead_us[s] + m * work_us[s]);
  }
  return most_us;
}

/// The least so many promises of the ways.
std::vector<double> least_promises(const Problem& problem, const std::vector<StageWay>& ways,
                                   std::size_t count) {
  const BlockGraph graph(problem.recorded, problem.profile);
  std::vector<double> all;
  for (const StageWay& way : ways) all.push_back(promise_us(problem, graph, way));
  std::ranges::sort(all);
  all.resize(std::min(all.size(), count));
  return all;
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
    const std::vector<StageWay> all = listed(problem, {.num_kept = 100'000});
    ASSERT_EQ(std::set<StageWay>(all.begin(), all.end()).size(), all.size());
    ASSERT_EQ(std::ssize(all), count_ways(graph, problem.num_stages, none)) << "round " << round;
    for (const std::size_t num_kept : {1, 4, 16, 64}) {
      const std::vector<StageWay> some = listed(problem, {.num_kept = num_kept});
      EXPECT_THAT(least_promises(problem, some, num_kept),
                  Pointwise(DoubleNear(1e-6), least_promises(problem, all, num_kept)))
          << "round " << round << ", " << num_kept;
    }
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
