#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

/// Step of the plan for the first ranks; infinity where none fits.
double step_ms(const testing::SearchCase& one, int num_ranks) {
  topology::Topology topology = one.topology;
  topology.ranks.resize(num_ranks);
  try {
    return partition_over_replicas(one.model.graph, one.model.profile, topology, one.options)
        .prediction->step_ms;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted) << error.message();
    return std::numeric_limits<double>::infinity();
  }
}

/// Ranks on 1 to 4 machines with memory of their own, replicas for some lanes; half of them may recompute.
testing::SearchCase random_case(std::mt19937& random, int max_nodes, int num_ranks) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  testing::SearchCase one = testing::random_search_case(random, max_nodes);
  const std::int64_t lanes = std::int64_t{1} << pick(3);
  one.options.batch = {lanes * (1 + pick(4)), 1, lanes};
  one.options.replicas = one.options.stages = 0;
  one.options.may_idle = true;
  one.options.may_copy = pick(2) == 0;
  one.topology = layout::testing::random_topology(random, num_ranks, 4);
  const double peak = static_cast<double>(layout::largest_peak_bytes(
      partition_over_replicas(one.model.graph, one.model.profile, one.topology, one.options)
          .prediction->peak_bytes));
  if (pick(2) == 0) one.options.recompute = Recompute::kAuto;
  if (pick(2) == 0) one.options.effort = 0.5;
  for (topology::RankPlace& rank : one.topology.ranks) {
    rank.memory_bytes = static_cast<std::int64_t>(peak * (0.3 + 0.1 * pick(16)));
  }
  return one;
}

/// Returns how often a rank more made a step shorter.
int expect_no_slower(std::mt19937& random, int max_nodes, int num_ranks, int num_rounds) {
  int num_gains = 0;
  for (int round = 0; round < num_rounds; ++round) {
    const testing::SearchCase one = random_case(random, max_nodes, num_ranks);
    double before = step_ms(one, 1);
    for (int ranks = 2; ranks <= num_ranks; ++ranks) {
      const double now = step_ms(one, ranks);
      EXPECT_LE(now, before * (1 + 1e-9)) << "round " << round << ", " << ranks << " ranks";
      num_gains += now < before ? 1 : 0;
      before = now;
    }
  }
  return num_gains;
}

TEST(MoreRanks, NeverGiveASlowerPlan) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const int num_gains = expect_no_slower(random, 8, 5, 6) + expect_no_slower(random, 14, 10, 1);
  EXPECT_GT(num_gains, 0);
}

/// A slow link: replicas are faster than stages, and a fifth rank changes nothing.
TEST(MoreRanks, FiveHaveTheReplicasOfFour) {
  Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1, 1}));
  model.profile.links = {{profile::LinkKind::kHost, {{0, 20, 20}}}};
  PartitionOptions options{.batch = {8, 1, 4}, .replicas = 0};
  const auto replicas = [&](int num_ranks) {
    return partition_over_replicas(model.graph, model.profile, make_topology(num_ranks), options)
        .roles[0]
        .mesh.data;
  };
  EXPECT_EQ(replicas(4), 4);
  EXPECT_EQ(replicas(5), 1);
  options.may_idle = true;
  EXPECT_EQ(replicas(5), 4);
  EXPECT_EQ(possible_replicas(options, 5), (std::vector<int>{1, 2, 4}));
  options.stages = 2;
  EXPECT_EQ(possible_replicas(options, 5), (std::vector<int>{1, 2}));
}

/// The last rank has too little memory for any node.
TEST(MoreRanks, ARankThatHoldsNothingIsLeftOut) {
  const Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1, 1000}));
  topology::Topology topology = make_topology(3);
  topology.ranks[2].memory_bytes = 1;
  const PartitionOptions options{.batch = {8, 1, 1}, .may_idle = true};
  EXPECT_EQ(partition(model.graph, model.profile, topology, options).stages.size(), 2U);
}

/// Messages take longer than all work.
TEST(MoreRanks, SeveralStagesOnARankMayLeaveRanks) {
  Model model = make_chain(std::vector<ChainNode>(7, {10, 10, 10, 1, 1}));
  model.profile.links = {{profile::LinkKind::kHost, {{0, 1000, 1000}}}};
  const PartitionOptions options{.batch = {4, 1, 1}, .may_idle = true, .stages_per_rank = 2};
  const layout::Plan plan = partition(model.graph, model.profile, make_topology(3), options);
  EXPECT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(layout::train_role(plan).mesh.pipeline, 1);
}

}  // namespace
}  // namespace trireme::partition
