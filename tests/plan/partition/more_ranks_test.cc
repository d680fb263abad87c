#include "tests/plan/partition/more_ranks.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

TEST(MoreRanks, NeverGiveASlowerPlan) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const int num_gains =
      testing::expect_no_slower(random, 8, 5, 3) + testing::expect_no_slower(random, 14, 10, 1);
  EXPECT_GT(num_gains, 0);
}

/// Three ranks once took 0.003 % longer than two: stages that recompute were chosen for other cuts.
TEST(MoreRanks, HaveThePlansOfFewerWhereStagesRecompute) {
  std::mt19937 random(2755788817);
  testing::expect_no_slower(random, 8, 5, 2);
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

/// What was asked of two ranks cannot be asked of one; the answer is that of two.
TEST(MoreRanks, WhatFewerCannotDoIsNoError) {
  const Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1, 1000}));
  topology::Topology topology = make_topology(2);
  for (topology::RankPlace& rank : topology.ranks) rank.memory_bytes = 1;
  const PartitionOptions options{.batch = {8, 1, 2}, .replicas = 2, .may_idle = true};
  try {
    partition_over_replicas(model.graph, model.profile, topology, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted) << error.what();
  }
}

/// The third rank is slow and has a share of a link; two are faster, by a plan that recomputes.
TEST(MoreRanks, LinksOfRanksThatAreLeftOutAreToo) {
  const Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1000, 10}));
  topology::Topology topology = make_topology(3);
  for (topology::RankPlace& rank : topology.ranks) rank.memory_bytes = 30'000;
  topology.shared_links = {{"card", {2}, 1}, {"switch", {1, 2}, 1}};
  const PartitionOptions options{.batch = {8, 1, 1}, .may_idle = true};
  EXPECT_GT(
      partition_over_replicas(model.graph, model.profile, topology, options).prediction->step_ms,
      0);
}

}  // namespace
}  // namespace trireme::partition
