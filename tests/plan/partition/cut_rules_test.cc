#include "trireme/plan/partition/cut_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/base/error_of.h"
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
using ::testing::HasSubstr;
using trireme::test::error_of;

TEST(CutRules, NamesMeanNodesModulesAndPatterns) {
  const std::string node = "decoder.3.attention.query/linear#2";
  for (const char* name : {"decoder.3.attention.query/linear#2", "decoder.3.attention.query",
                           "decoder.3", "decoder", "decoder.[23]", "*.query", "*linear*"}) {
    EXPECT_TRUE(means_node(name, node)) << name;
  }
  for (const char* name : {"decoder.30", "decoder.", "3", "attention", "query", "decoder.3.att",
                           "decoder.3.attention.query/linear", ""}) {
    EXPECT_FALSE(means_node(name, node)) << name;
  }
}

/// embed | block.0, block.1, block.2, two nodes each | head | loss
Model named_blocks() {
  Model model = make_chain(std::vector<ChainNode>(8, {10, 10, 10, 1, 1}));
  const char* names[] = {"embed/a",   "block.0/a", "block.0/b", "block.1/a", "block.1/b",
                         "block.2/a", "block.2/b", "head/a",    "head/loss"};
  for (int p = 0; p < 9; ++p) model.graph.nodes[p].name = names[p];
  model.profile.graph_sha256 = graph::graph_sha256(model.graph);
  return model;
}

TEST(CutRules, NodesHaveTheirStages) {
  const Model model = named_blocks();
  const CutRules rules(model.graph, {3}, {{"block.1", 1}, {"head", 2}}, 3);
  EXPECT_TRUE(rules.is_possible());
  EXPECT_TRUE(rules.keep({3, 5}));
  EXPECT_TRUE(rules.keep({3, 7}));
  EXPECT_FALSE(rules.keep({2, 5}));  // 3 must be a cut
  EXPECT_FALSE(rules.keep({3, 4}));  // parts block.1
  EXPECT_FALSE(rules.keep({3, 8}));  // head/a is in stage 1
  EXPECT_FALSE(rules.keep({4, 5}));
  EXPECT_FALSE(CutRules(model.graph, {}, {{"head", 1}}, 1).is_possible());
}

TEST(CutRules, WhatCannotBeIsRefused) {
  const Model model = named_blocks();
  const auto complaint = [&](const StageOf& stage_of, int num_stages = 3) {
    return error_of([&] { check_stage_of(model.graph, stage_of, num_stages); }).message();
  };
  EXPECT_NO_THROW(check_stage_of(model.graph, {}, 1));
  EXPECT_NO_THROW(check_stage_of(model.graph, {{"block.0", 1}, {"block.?", 1}}, 3));
  EXPECT_THAT(complaint({{"blok", 1}}), HasSubstr("'blok' means no node and no module; there are "
                                                  "the modules embed, block, head, and"));
  EXPECT_THAT(complaint({{"head", 3}}), HasSubstr("says stage 3, but there are stages 0 to 2"));
  EXPECT_THAT(complaint({{"head", 1}}, 1), HasSubstr("but there is stage 0 alone"));
  EXPECT_THAT(complaint({{"block.1", 1}, {"block.1/a", 2}}),
              HasSubstr("node 3 ('block.1/a') in stage 1 and in stage 2; leave one"));
  EXPECT_THAT(complaint({{"block.1", 2}, {"block.2", 1}}),
              HasSubstr("node 4 ('block.1/b') in stage 2, but the later node 5 ('block.2/a') in "
                        "stage 1; stages take nodes in their order"));
  EXPECT_THAT(complaint({{"block.0", 0}, {"block.1", 2}}),
              HasSubstr("between them the graph allows 1 cut"));
  EXPECT_THAT(complaint({{"embed", 1}}), HasSubstr("the first node in stage 0 and node 0"));
  EXPECT_THAT(complaint({{"head/loss", 1}}), HasSubstr("and the last node in stage 2, but"));
}

/// Eight nodes that take as long, and the loss; else stages would have about three each.
TEST(CutRules, TheSearchKeepsNodesInTheirStages) {
  const Model model = named_blocks();
  PartitionOptions options{.batch = {8, 1, 1}, .may_copy = false};
  const auto cuts = [&] {
    const layout::Plan plan = partition(model.graph, model.profile, make_topology(3), options);
    return std::vector<int>{plan.stages[1].begin, plan.stages[2].begin};
  };
  options.stage_of = {{"block.1", 0}, {"head", 2}};
  EXPECT_EQ(cuts().front(), 5);
  EXPECT_LE(cuts().back(), 7);
  options.cuts = {6};
  EXPECT_EQ(cuts(), (std::vector<int>{5, 6}));
  options.cuts = {7};
  options.stage_of = {{"block.2", 2}};
  EXPECT_THAT(error_of([&] { cuts(); }).message(),
              HasSubstr("no cuts into 3 stages keep all that --cut-at and --stage-of ask for"));
}

/// Moves alone, which large problems are searched by, find the best of the cuts that keep the rules.
TEST(CutRules, MovesKeepThem) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_kept = 0;
  for (int round = 0; round < 40; ++round) {
    testing::SearchCase one = testing::random_search_case(random, 12);
    if (!testing::has_plans(one)) continue;
    const auto at = random() % one.model.graph.nodes.size();
    one.model.graph.nodes[at].name = "here";
    one.options.stage_of = {{"here", static_cast<int>(random() % one.num_stages)}};
    one.options.schedule = "interleaved";
    const Problem problem = one.problem();
    const Setting setting{"interleaved", {}, one.model.graph};
    const CutRules rules(one.model.graph, {}, one.options.stage_of, one.num_stages);
    const auto all = Search(problem, setting).find({});
    const auto moved = Search(problem, setting, {.exhaustive = 0}).find({});
    ASSERT_EQ(all.has_value(), moved.has_value()) << "round " << round;
    if (!all) continue;
    ++num_kept;
    EXPECT_TRUE(rules.keep(all->cuts) && rules.keep(moved->cuts)) << "round " << round;
    EXPECT_LE(moved->score.primary, 1.05 * all->score.primary) << "round " << round;
  }
  EXPECT_GT(num_kept, 10);
}

}  // namespace
}  // namespace trireme::partition
