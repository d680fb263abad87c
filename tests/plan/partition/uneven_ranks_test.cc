#include "trireme/plan/partition/uneven_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/plan/partition/all_divisions.h"
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

TEST(UnevenRanks, AreNearTheBestOfAllOnRandomProblems) {
  std::mt19937 random(11);
  EXPECT_GT(testing::expect_near_the_best(random, 40), 3);
}

}  // namespace
}  // namespace trireme::partition
