#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <random>

#include "tests/graphs/graph_builder.h"
#include "tests/plan/partition/search_cases.h"
#include "trireme/error.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/partition/search.h"

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

/// 10,000 problems: chains and branches, 1 to 4 hosts, one replica or two, half with caps of memory; a third each that keeps
/// all, recomputes where it must, and recomputes all. Where all is kept, moves alone are judged too.
TEST(ManyProblems, PlansComeCloseToTheExhaustiveBest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps plans[3], moves;
  constexpr Recompute kWays[] = {Recompute::kNone, Recompute::kAuto, Recompute::kAll};
  for (int round = 0; round < 10'000; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 14);
    const auto way = random() % 3;
    if (!testing::has_plans(one)) continue;
    testing::cap_memory(random, one);
    one.options.recompute = kWays[way];
    testing::add_planned(one, plans[way]);
    if (way != 0) continue;
    const Score best = testing::exhaustive(one.problem(), {});
    const Score found = testing::climb(one.problem(), {});
    moves.num_refused += found.excess_bytes > 0 ? 1 : 0;
    moves.num_wrongly_refused += found.excess_bytes > 0 && best.excess_bytes <= 0 ? 1 : 0;
    if (found.excess_bytes <= 0) moves.add(found.primary, best.primary);
  }
  print("all kept", plans[0]);
  print("recomputed where needed", plans[1]);
  print("all recomputed", plans[2]);
  print("all kept, by moves alone", moves);
  for (const testing::Gaps& gaps : {plans[0], plans[1], plans[2], moves}) {
    EXPECT_LE(gaps.mean(), 0.01);
    EXPECT_LE(gaps.worst, 0.03);
    EXPECT_EQ(gaps.num_wrongly_refused, 0);
  }
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
