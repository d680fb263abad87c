#include "trireme/plan/partition/rank_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;

/// Two stages, one rank four times as fast as the other: it takes the longer part, wherever that is.
TEST(RankOrders, TheFastRankTakesTheLongerPart) {
  for (const int longest : {0, 5}) {
    std::vector<layout::testing::ChainNode> nodes(6, {1, 1, 1, 1, 1});
    nodes[longest] = {90, 90, 90, 1, 1};
    const Model model = make_chain(nodes);
    topology::Topology topology = make_topology(2);
    topology.ranks[longest == 0 ? 1 : 0].speed = 4;
    const layout::Plan plan = partition(model.graph, model.profile, topology, {.batch = {8, 1, 1}});
    const int stage = longest == 0 ? 0 : 1;
    EXPECT_EQ(layout::rank_of(plan, stage, 0), longest == 0 ? 1 : 0);
  }
}

/// Ranks 0 and 2 share a host, 1 and 3 the other, and the network is slow: it is crossed once.
TEST(RankOrders, NeighboursAreOnOneHost) {
  Model model = make_chain(std::vector<layout::testing::ChainNode>(8, {10, 10, 10, 1000, 1}));
  model.profile.links = {{profile::LinkKind::kHost, {{0, 1, 1}, {4000, 1, 1}}},
                         {profile::LinkKind::kNetwork, {{0, 5, 5}, {4000, 500, 500}}}};
  topology::Topology topology = make_topology(4);
  topology.hosts.push_back(topology.hosts[0]);
  topology.hosts[1].name = "b";
  for (const int rank : {1, 3}) topology.ranks[rank].host = 1;
  const layout::Plan plan = partition(model.graph, model.profile, topology, {.batch = {16, 1, 1}});
  std::vector<int> hosts;
  for (int s = 0; s < 4; ++s) hosts.push_back(topology.ranks[layout::rank_of(plan, s, 0)].host);
  EXPECT_TRUE(std::ranges::is_sorted(hosts));
}

TEST(RankOrders, AreOneWhereAllRanksAreAlike) {
  const Model model = make_chain(std::vector<layout::testing::ChainNode>(8, {1, 1, 1, 1, 1}));
  const topology::Topology topology = make_topology(16);
  const PartitionOptions options{.batch = {16, 1, 1}};
  const Problem problem{model.graph, model.profile, topology, options, "", 8};
  EXPECT_EQ(rank_orders(problem, 4).size(), 1U);
  EXPECT_EQ(rank_orders(problem, 16).size(), 1U);
}

/// Random ranks of three speeds on up to three hosts: as good as the best of all placements and all cuts in the simulator.
TEST(RankOrders, SmallProblemsAreSolved) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_moved = 0;
  for (int round = 0; round < 12; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 7);
    if (!testing::has_plans(one)) continue;
    one.options.replicas = one.num_stages == 2 ? one.options.replicas : 1;
    one.options.batch = {one.options.replicas * (1 + static_cast<int>(random() % 6)), 1,
                         one.options.replicas};
    const int num_ranks = one.num_stages * one.options.replicas;
    one.topology = layout::testing::random_topology(random, num_ranks, 3);
    for (topology::RankPlace& rank : one.topology.ranks) {
      rank.speed = std::array{0.5, 1.0, 2.0}[random() % 3];
    }
    Problem problem = one.problem();
    problem.order.resize(num_ranks);
    std::iota(problem.order.begin(), problem.order.end(), 0);
    double best_us = kUnlimited;
    const double first_us = testing::exhaustive(problem, {}).primary;
    do {
      best_us = std::min(best_us, testing::exhaustive(problem, {}).primary);
    } while (std::ranges::next_permutation(problem.order).found);
    const layout::Plan plan =
        partition(one.model.graph, one.model.profile, one.topology, one.options);
    EXPECT_NEAR(plan.prediction->step_ms * 1000, best_us, 1e-9 * best_us) << "round " << round;
    num_moved += best_us < first_us * 0.999 ? 1 : 0;
  }
  EXPECT_GT(num_moved, 0);
}

}  // namespace
}  // namespace trireme::partition
