#include "trireme/plan/partition/uneven_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/rank_divisions.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;
using ::testing::ElementsAre;
using testing::SearchCase;

/// A node that cannot be cut and takes two thirds of the time.
Model heavy_first() { return make_chain({{20, 20, 20, 1, 1}, {5, 5, 5, 1, 1}, {5, 5, 5, 1, 1}}); }

layout::Plan planned(const Model& model, int num_ranks, PartitionOptions options) {
  options.replicas = 0;
  return partition_over_replicas(model.graph, model.profile, make_topology(num_ranks), options);
}

TEST(UnevenDivisions, AreAllThatKeepTheBits) {
  const PartitionOptions four{.batch = {8, 1, 4}};
  EXPECT_THAT(uneven_divisions(four, 3, 9), ElementsAre(ElementsAre(1, 2), ElementsAre(2, 1)));
  EXPECT_THAT(uneven_divisions(four, 4, 9),
              ElementsAre(ElementsAre(1, 1, 2), ElementsAre(1, 2, 1), ElementsAre(2, 1, 1)));
  EXPECT_THAT(uneven_divisions(four, 5, 2), ElementsAre(ElementsAre(1, 4), ElementsAre(4, 1)));
  EXPECT_THAT(uneven_divisions({.batch = {8, 1, 4}, .stages = 3}, 5, 9),
              ElementsAre(ElementsAre(1, 2, 2), ElementsAre(2, 1, 2), ElementsAre(2, 2, 1)));
  EXPECT_TRUE(uneven_divisions({.batch = {8, 1, 1}}, 5, 9).empty());
  // Six lanes: three ranks with two each, one with all, no two with three.
  const PartitionOptions six{.batch = {6, 1, 6}};
  EXPECT_THAT(uneven_divisions(six, 4, 2), ElementsAre(ElementsAre(1, 3), ElementsAre(3, 1)));
  EXPECT_TRUE(uneven_divisions(six, 5, 2).empty());
}

TEST(UnevenRanks, TwoRanksRunTheStageThatIsTwiceAsLong) {
  const PartitionOptions options{.batch = {32, 1, 2}, .may_join = true};
  const layout::Plan plan = planned(heavy_first(), 3, options);
  EXPECT_EQ(plan.roles[0].placement, (std::vector<int>{0, 1, 2, 2}));
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[1].begin, 1);
  EXPECT_EQ(plan.prediction->peak_bytes.size(), 3U);
  EXPECT_LT(plan.prediction->step_ms, 1.1 * 32 * 90 / 3 / 1000);
  PartitionOptions even = options;
  even.may_join = false;
  EXPECT_GT(planned(heavy_first(), 3, even).prediction->step_ms, 1.8);
}

TEST(UnevenRanks, AnEvenPlanThatIsAsFastStays) {
  const Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1, 1}));
  const PartitionOptions options{.batch = {32, 1, 4}, .may_idle = true, .may_join = true};
  EXPECT_TRUE(planned(model, 4, options).roles[0].is_even());
}

TEST(UnevenRanks, WhatOnlyEvenPlansHaveKeepsThemEven) {
  const auto is_even = [](const std::function<void(PartitionOptions&)>& change) {
    PartitionOptions options{.batch = {32, 1, 2}, .may_idle = true, .may_join = true};
    change(options);
    return planned(heavy_first(), 3, options).roles[0].is_even();
  };
  EXPECT_FALSE(is_even([](PartitionOptions&) {}));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.may_join = false; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.may_replicate = false; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.shard_state = true; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.cuts = {1}; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.recompute = Recompute::kAll; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.balance = Balance::kUniform; }));
  EXPECT_TRUE(is_even([](PartitionOptions& o) { o.objective = Objective::kMemory; }));
}

/// All divisions, cuts and schedules, forecast one by one; what `partition` finds with as many ranks everywhere too.
double exhaustive_ms(const SearchCase& one, double even_ms) {
  double best = even_ms;
  std::vector<int> places;
  const std::vector<bool> allowed = graph::allowed_cuts(one.model.graph);
  for (int c = 1; c + 1 < static_cast<int>(allowed.size()); ++c) {
    if (allowed[c]) places.push_back(c);
  }
  const auto most_positions = static_cast<int>(places.size()) + 1;
  for (int ranks = 3; ranks <= static_cast<int>(one.topology.ranks.size()); ++ranks) {
    for (const RanksByPosition& division : uneven_divisions(one.options, ranks, most_positions)) {
      PartitionOptions options = one.options;
      options.replicas = std::ranges::max(division);
      Problem problem{one.model.graph,
                      one.model.profile,
                      one.topology,
                      options,
                      graph::graph_sha256(one.model.graph),
                      static_cast<int>(division.size())};
      int rank = 0;
      for (const int num : division) {
        for (int i = 0; i < num; ++i, ++rank) {
          problem.placement.insert(problem.placement.end(), options.replicas / num, rank);
        }
      }
      best = std::min(best, testing::Exhaustive(problem).best({}).primary / 1000);
    }
  }
  return best;
}

TEST(UnevenRanks, AreNearTheBestOfAllOnRandomProblems) {
  const unsigned seed = 11;
  std::mt19937 random(seed);
  testing::Gaps gaps;
  int num_uneven = 0;
  for (int i = 0; i < 40; ++i) {
    SearchCase one = testing::random_search_case(random, 9);
    one.topology = make_topology(3 + i % 3);
    one.options.replicas = one.options.stages = 0;
    one.options.batch = {4 * (1 + static_cast<int>(random() % 6)), 1, 4};
    one.options.may_idle = true;
    const auto partitioned = [&] {
      return partition_over_replicas(one.model.graph, one.model.profile, one.topology, one.options);
    };
    const double even_ms = partitioned().prediction->step_ms;
    one.options.may_join = true;
    const layout::Plan plan = partitioned();
    layout::check(plan, plan.graph_sha256, layout::planned_graph(one.model.graph, plan));
    EXPECT_LE(plan.prediction->step_ms, even_ms) << i;
    gaps.add(plan.prediction->step_ms, exhaustive_ms(one, even_ms));
    num_uneven += plan.roles[0].is_even() ? 0 : 1;
  }
  EXPECT_GT(num_uneven, 3);
  EXPECT_LT(gaps.mean(), 1e-9);
  EXPECT_LT(gaps.worst, 1e-9);
}

}  // namespace
}  // namespace trireme::partition
