#include "trireme/plan/partition/search.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

/// Chains and branches, links of 1 to 400 Gb/s, 1 to 4 machines, memory caps: judged by trying all
/// cuts and schedules in the simulator.
TEST(Search, MovesComeCloseToTheExhaustiveBest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps gaps;
  for (int round = 0; round < 80; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 10);
    if (!testing::has_plans(one)) continue;
    testing::Exhaustive all(one.problem());
    testing::cap_memory(random, one, all);
    const Score best = all.best({});
    const Score found = testing::climb(one.problem(), {});
    EXPECT_EQ(found.excess_bytes > 0, best.excess_bytes > 0) << "round " << round;
    EXPECT_GE(found.primary, (1 - 1e-9) * best.primary);
    if (found.excess_bytes == 0) gaps.add(found.primary, best.primary);
  }
  EXPECT_GT(gaps.num_cases, 30);
  EXPECT_LE(gaps.mean(), 0.01);
  EXPECT_LE(gaps.worst, 0.03);
}

/// What `partition` gives is as good as the best of small problems, and refused where none fits.
TEST(Search, SmallProblemsAreSolved) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps keeps, recomputes;
  for (int round = 0; round < 60; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 9);
    if (!testing::has_plans(one)) continue;
    testing::Exhaustive all(one.problem());
    testing::cap_memory(random, one, all);
    constexpr Recompute kWays[] = {Recompute::kNone, Recompute::kAuto, Recompute::kAll};
    one.options.recompute = kWays[random() % 3];
    testing::add_planned(one, all.best({}),
                         one.options.recompute == Recompute::kNone ? keeps : recomputes);
  }
  EXPECT_GT(keeps.num_cases, 10);
  EXPECT_LE(keeps.worst, 1e-9);
  EXPECT_LE(recomputes.mean(), 0.01);
  EXPECT_LE(recomputes.worst, 0.4);  // one problem in a thousand is far from its best
  EXPECT_EQ(keeps.num_wrongly_refused + recomputes.num_wrongly_refused, 0);
}

/// The least peak within a slowdown, of small problems and by moves alone.
TEST(Search, TheObjectiveMemoryComesCloseToTheExhaustiveBest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  testing::Gaps gaps;
  for (int round = 0; round < 40; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 9);
    if (!testing::has_plans(one)) continue;
    one.options.replicas = 1;
    one.options.placement = Placement::kCluster;  // Ranks in their order, as `exhaustive` has them.
    one.options.objective = Objective::kMemory;
    one.options.max_slowdown = 1 + 0.1 * static_cast<double>(random() % 10);
    testing::Exhaustive all(one.problem());
    const Score fastest = all.best({});
    const Goal goal{Objective::kMemory, fastest.primary * one.options.max_slowdown};
    const Score best = all.best(goal);
    const layout::Plan plan =
        partition(one.model.graph, one.model.profile, one.topology, one.options);
    EXPECT_EQ(static_cast<double>(layout::largest_peak_bytes(plan.prediction->peak_bytes)),
              best.primary);
    const Score found = testing::climb(one.problem(), goal);
    EXPECT_EQ(found.excess_us, 0) << "round " << round;
    gaps.add(found.primary, best.primary);
  }
  EXPECT_LE(gaps.mean(), 0.02);
  EXPECT_LE(gaps.worst, 0.2);
}

/// Ranks on two machines, a slow link between them: the cut that it carries is the cheap one.
TEST(Search, EachCutIsPricedByItsOwnLink) {
  std::vector<layout::testing::ChainNode> nodes(12, {10, 10, 10, 1000, 1});
  nodes[5].width = 1;
  const Model model = [&] {
    Model made = make_chain(nodes);
    made.profile.links = {{profile::LinkKind::kHost, {{0, 1, 1}, {4000, 1, 1}}},
                          {profile::LinkKind::kNetwork, {{0, 5, 5}, {4000, 2000, 2000}}}};
    return made;
  }();
  topology::Topology topology = make_topology(4);
  topology.hosts.push_back(topology.hosts[0]);
  topology.hosts[1].name = "b";
  for (const int rank : {2, 3}) topology.ranks[rank].host = 1;
  const layout::Plan plan =
      partition(model.graph, model.profile, topology, {.batch = {16, 1, 1}, .may_copy = false});
  EXPECT_EQ(plan.stages[2].begin, 6);
  EXPECT_EQ(plan.stages[1].begin, 3);
  EXPECT_EQ(plan.stages[3].begin, 9);
}

/// Sending takes longer than all work: one rank is faster than two.
TEST(Search, RanksStayIdleWhereThatIsFaster) {
  Model model = make_chain(std::vector<layout::testing::ChainNode>(6, {1, 1, 1, 1, 1}));
  model.profile.links = {{profile::LinkKind::kHost, {{0, 1000, 1000}}}};
  PartitionOptions options{.batch = {4, 1, 1}};
  const auto num_stages = [&] {
    return partition(model.graph, model.profile, make_topology(3), options).stages.size();
  };
  EXPECT_EQ(num_stages(), 3U);
  options.may_idle = true;
  EXPECT_EQ(num_stages(), 1U);
  options.stages = 2;
  EXPECT_EQ(num_stages(), 2U);
}

/// Four nodes are at most four stages; the other ranks have nothing to do.
TEST(Search, RanksStayIdleWhereThereAreTooFewCuts) {
  const Model model = make_chain({{8, 8, 8, 1, 1}, {8, 8, 8, 1, 1}, {8, 8, 8, 1, 1}});
  const PartitionOptions options{.batch = {16, 1, 1}, .may_idle = true};
  const layout::Plan plan = partition(model.graph, model.profile, make_topology(8), options);
  EXPECT_LE(plan.stages.size(), 4U);
}

TEST(Search, FindsNothingWithoutCuts) {
  const Model model = make_chain({{}});  // A node and the loss: one cut.
  const topology::Topology topology = make_topology(3);
  const PartitionOptions options{.batch = {3, 1, 1}};
  const Problem problem{model.graph, model.profile, topology, options, "hash", 3};
  const Setting setting{"simple", {}, model.graph};
  EXPECT_FALSE(Search(problem, setting).find({}).has_value());
}

}  // namespace
}  // namespace trireme::partition
