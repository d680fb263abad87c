#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>

#include "tests/graphs/graph_builder.h"
#include "tests/plan/partition/more_ranks.h"
#include "tests/plan/partition/search_cases.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/partition/chain.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/partition/range_cost.h"
#include "trireme/plan/partition/stage_ranges.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::Model;

void print(const char* what, const testing::Gaps& gaps) {
  std::printf(
      "%-28s %5d planned: %.3f %% above the best on average, %.2f %% at worst; %d refused, %d of "
      "them wrongly\n",
      what, gaps.num_cases, 100 * gaps.mean(), 100 * gaps.worst, gaps.num_refused,
      gaps.num_wrongly_refused);
}

/// The least cost of the costliest stage, over all cuts.
class LeastMax {
 public:
  LeastMax(RangeCost& ranges, const ChainRules& rules) : ranges_(ranges), rules_(rules) {}

  double cost() {
    place(0, 0, 0);
    return least_;
  }

 private:
  void place(int begin, int stage, double most) {
    const int num_nodes = static_cast<int>(rules_.allowed.size()) - 1;
    const bool is_last = stage + 1 == static_cast<int>(rules_.limits.size());
    for (int end = begin + 1; end <= num_nodes; ++end) {
      if (is_last != (end == num_nodes) || (!is_last && !rules_.allowed[end])) continue;
      const RangePrice price = price_of(begin, end, stage);
      if (price.bound > rules_.limits[stage] || price.cost >= least_) continue;
      const double now = std::max(most, price.cost);
      if (is_last) {
        least_ = std::min(least_, now);
      } else {
        place(end, stage + 1, now);
      }
    }
  }

  RangePrice price_of(int begin, int end, int stage) {
    const auto [entry, is_new] = known_.try_emplace({begin, end, stage});
    if (is_new) {
      ranges_.begin(begin);
      for (int n = begin; n < end; ++n) ranges_.extend();
      entry->second = ranges_.price(stage);
    }
    return entry->second;
  }

  RangeCost& ranges_;
  const ChainRules& rules_;
  std::map<std::tuple<int, int, int>, RangePrice> known_;
  double least_ = kUnlimited;
};

/// Whether the DP finds the least, under a schedule.
bool is_exact(const Problem& problem, const std::string& schedule) {
  const Setting setting{schedule, {}, problem.recorded};
  RangeCost ranges(setting.planned, problem.profile, range_rules(problem, setting),
                   RangeGoal::kTime);
  ChainRules rules{graph::allowed_cuts(setting.planned), {}, {}};
  for (int s = 0; s < problem.num_stages; ++s) {
    rules.limits.push_back(static_cast<double>(problem.memory_limit(s)));
  }
  const std::optional<ChainCuts> chain = cut_chain(ranges, rules);
  const double found = chain ? chain->cost : kUnlimited;
  const double least = LeastMax(ranges, rules).cost();
  return found == least || std::abs(found - least) <= 1e-9 * least;
}

/// 10,000 problems: chains and branches, 1 to 4 hosts, one replica or two, half with caps of memory; a third each that keeps
/// all, recomputes where it must, and recomputes all. Where all is kept, moves alone are judged too. Ranks stand in the
/// order of all plans that are tried, but in a fourth of the problems, where the plan may choose.
TEST(ManyProblems, PlansComeCloseToTheExhaustiveBest) {
  constexpr int kProblems = 10'000, kReport = 1000;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps plans[3], moves;
  int num_problems = 0, num_not_least = 0;
  constexpr Recompute kWays[] = {Recompute::kNone, Recompute::kAuto, Recompute::kAll};
  const std::clock_t begin = std::clock();
  std::clock_t planning = 0;
  while (num_problems < kProblems) {
    testing::SearchCase one = testing::random_search_case(random, 14);
    const auto way = random() % 3;
    if (random() % 4 != 0) one.options.placement = Placement::kCluster;
    if (!testing::has_plans(one)) continue;
    testing::Exhaustive all(one.problem());
    testing::cap_memory(random, one, all);
    one.options.recompute = kWays[way];
    const Score best = all.best({});
    const std::clock_t before = std::clock();
    testing::add_planned(one, best, plans[way]);
    planning += std::clock() - before;
    if (way == 0) testing::add_moved(one, best, moves);
    num_not_least += is_exact(one.problem(), "interleaved") ? 0 : 1;
    if (++num_problems % kReport != 0) continue;
    std::printf(
        "%d problems, seed %u: %.0f s, %.0f of them planning; worst of plans %.2f %%, of moves "
        "%.2f %%\n",
        num_problems, seed, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC,
        static_cast<double>(planning) / CLOCKS_PER_SEC,
        100 * std::max({plans[0].worst, plans[1].worst, plans[2].worst}), 100 * moves.worst);
    std::fflush(stdout);
  }
  print("all kept", plans[0]);
  print("recomputed where needed", plans[1]);
  print("all recomputed", plans[2]);
  print("all kept, by moves alone", moves);
  std::printf("slowest stage not the least in %d\n", num_not_least);
  EXPECT_EQ(num_not_least, 0);
  for (const testing::Gaps& gaps : {plans[0], plans[1], plans[2], moves}) {
    EXPECT_LE(gaps.mean(), 0.01);
    EXPECT_EQ(gaps.num_wrongly_refused, 0);
  }
  EXPECT_LE(plans[0].worst, 0.03);
  EXPECT_LE(moves.worst, 0.03);
  // Cuts are searched as if all were kept, and orders of ranks are chosen so; few problems are far off.
  EXPECT_LE(plans[1].worst, 0.2);
  EXPECT_LE(plans[2].worst, 0.2);
}

TEST(ManyProblems, MoreRanksNeverGiveASlowerPlan) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const int num_gains = testing::expect_no_slower(random, 10, 5, 60);
  EXPECT_GT(num_gains, 0);
}

/// Work of a log-normal distribution, some nodes with branches over ten others.
Model long_model(int num_nodes, bool has_branches) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> times(4, 1), widths(8, 1);
  graph::testing::GraphBuilder b;
  std::vector<graph::ValueId> values = {b.input("x", {64})};
  for (int n = 0; n + 1 < num_nodes; ++n) {
    std::vector<graph::ValueId> inputs = {values.back()};
    if (has_branches && n > 10 && n % 3 == 0) inputs.push_back(values[values.size() - 10]);
    if (n % 2 == 0) inputs.push_back(b.parameter("p" + std::to_string(n), {1000}));
    values.push_back(
        b.node("work", inputs, b.batch({static_cast<std::int64_t>(widths(random)) + 1})));
  }
  b.loss(values.back());
  Model model{b.graph(), layout::testing::make_free_profile(b.graph())};
  for (auto& cost : model.profile.costs) {
    cost.forward_us = times(random);
    cost.input_us = cost.forward_us;
    cost.saved_inputs = {0};
  }
  model.profile.links = {{profile::LinkKind::kHost, {{0, 2, 2}, {1'000'000, 200, 200}}}};
  return model;
}

double planning_seconds(int num_nodes, int num_stages, bool has_branches,
                        Objective objective = Objective::kSpeed) {
  const Model model = long_model(num_nodes, has_branches);
  const topology::Topology topology = layout::testing::make_topology(num_stages);
  const std::clock_t begin = std::clock();
  const layout::Plan plan =
      partition(model.graph, model.profile, topology,
                {.batch = {4 * num_stages, 1, 1}, .objective = objective, .may_idle = true});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%5d nodes, %2d stages, %s: %.2f s; step %.3f of the bound\n", num_nodes, num_stages,
              has_branches ? "branches" : "chain", seconds,
              plan.prediction->step_ms / plan.prediction->lower_bound_ms);
  return seconds;
}

/// Processor time, with room for a machine that is twice as slow.
TEST(ManyProblems, LongGraphsArePlannedInTime) {
  for (const bool has_branches : {false, true}) {
    for (const int num_stages : {4, 16, 64}) {
      EXPECT_LE(planning_seconds(1000, num_stages, has_branches), 4);
    }
    EXPECT_LE(planning_seconds(10'000, 64, has_branches), 40);
    EXPECT_LE(planning_seconds(1000, 64, has_branches, Objective::kMemory), 20);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("most memory: %ld MiB\n", usage.ru_maxrss / 1024);
  EXPECT_LE(usage.ru_maxrss, 1 << 20);
}

}  // namespace
}  // namespace trireme::partition
