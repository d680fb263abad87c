#include "trireme/plan/partition/stage_bound.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/partition/search_cases.h"
#include "tests/plans/chain_model.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/partition/stage_copies.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::Model;

/// F + B, of which a third is F.
Model thirds_of(const std::vector<double>& work) {
  std::vector<ChainNode> nodes;
  for (const double one : work) nodes.push_back({one / 3, one / 3, one / 3, 1, 1});
  return make_chain(nodes);
}

TEST(StageBound, StagesTakeWhatTheStepLeavesThem) {
  const Model model = thirds_of({3, 2, 2, 1});
  const StageBound bound(model.graph, model.profile, {});
  const StageBound::Steps steps{.num_microbatches = 4};
  EXPECT_EQ(bound.least_stages(17, steps), 3);
  EXPECT_EQ(bound.least_stages(16.9, steps), 4);
  EXPECT_EQ(bound.least_stages(20, steps), 2);
  EXPECT_EQ(bound.least_stages(32, steps), 1);
  EXPECT_GT(bound.least_stages(11.9, steps), 4);  // The first node alone takes 12.
  EXPECT_EQ(bound.cuts(3, steps), (std::vector<int>{1, 2}));
  EXPECT_EQ(bound.cuts(2, steps), (std::vector<int>{2}));
  EXPECT_DOUBLE_EQ(bound.work_us(), 8);
}

/// A slow rank first: 12, then 3 / 2 + 4 x 5 / 2. A fast one first: 4 x 5 / 2, then 5 / 2 + 4 x 3.
TEST(StageBound, StagesHaveSpeeds) {
  const Model model = thirds_of({3, 2, 2, 1});
  const StageBound bound(model.graph, model.profile, {});
  const StageBound::Steps steps{.num_microbatches = 4};
  EXPECT_TRUE(bound.may_do(17, steps, {1, 1, 1}));
  EXPECT_FALSE(bound.may_do(16.9, steps, {1, 1, 1}));
  EXPECT_TRUE(bound.may_do(12, steps, {1, 2}));
  EXPECT_FALSE(bound.may_do(12, steps, {2, 1}));
  EXPECT_TRUE(bound.may_do(14.5, steps, {2, 1}));
}

/// Only the forwards of earlier stages come first: 5 / 3 + 4 x 3 for the last of three.
TEST(StageBound, SplitBackwardsWaitForForwardsAlone) {
  const Model model = thirds_of({3, 2, 2, 1});
  const StageBound bound(model.graph, model.profile, {});
  EXPECT_EQ(bound.least_stages(13.7, {.num_microbatches = 4, .splits_backwards = true}), 3);
  EXPECT_EQ(bound.least_stages(13.6, {.num_microbatches = 4, .splits_backwards = true}), 4);
}

/// What stages make themselves is waited for by none.
TEST(StageBound, CopiedNodesCountNothing) {
  const Model model = thirds_of({3, 2, 2, 1});
  const StageBound bound(model.graph, model.profile, {model.graph.nodes[0].id});
  EXPECT_DOUBLE_EQ(bound.work_us(), 5);
  EXPECT_EQ(bound.least_stages(20, {.num_microbatches = 4}), 1);
}

/// No plan has fewer stages than the bound says for its step.
TEST(StageBound, NoPlanBeatsIt) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_tight = 0;
  for (int round = 0; round < 300; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 12);
    if (!testing::has_plans(one)) continue;
    std::vector<graph::NodeId> copied;
    const auto groups = copy_candidates(one.model.graph, one.model.profile);
    if (!groups.empty() && random() % 2 == 0) copied = groups[random() % groups.size()];
    const StageBound bound(one.model.graph, one.model.profile, {copied.begin(), copied.end()});
    const std::vector<std::string> names = schedule::schedule_names();
    const graph::Graph planned =
        copied.empty() ? one.model.graph : graph::copy_to_consumers(one.model.graph, copied);
    const Setting setting{names[random() % names.size()], copied, planned};
    const std::vector<int> cuts = layout::testing::random_cuts(random, setting.planned, 3);
    one.num_stages = static_cast<int>(cuts.size()) + 1;
    one.topology =
        layout::testing::random_topology(random, one.num_stages * one.options.replicas, 4);
    const Problem problem = one.problem();
    const double step_us = evaluate(problem, setting, cuts).forecast.simulation.step_us;
    const StageBound::Steps steps{problem.num_microbatches(),
                                  schedule::splits_backwards(make_schedule(problem, setting))};
    EXPECT_LE(bound.least_stages(step_us, steps), one.num_stages) << "round " << round;
    std::vector<double> speeds(one.num_stages, 1);
    EXPECT_TRUE(bound.may_do(step_us, steps, speeds)) << "round " << round;
    speeds[random() % speeds.size()] = 2;
    EXPECT_TRUE(bound.may_do(step_us, steps, speeds)) << "round " << round;
    num_tight += bound.least_stages(0.8 * step_us, steps) > one.num_stages ? 1 : 0;
  }
  EXPECT_GT(num_tight, 20);
}

}  // namespace
}  // namespace trireme::partition
