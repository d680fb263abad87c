#include "trireme/plan/partition/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/base/error_of.h"
#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/layout_show.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_topology;
using layout::testing::Model;
using ::testing::HasSubstr;

TEST(Balance, RunsAreFilledInOrder) {
  const std::array<double, 6> weights = {4, 1, 1, 1, 1, 4};
  EXPECT_EQ(fill_evenly(weights, 2), std::vector<int>{3});
  EXPECT_EQ(fill_evenly(weights, 3), (std::vector<int>{1, 5}));
  EXPECT_EQ(fill_evenly(weights, 6), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(fill_evenly(weights, 1), std::vector<int>{});
  EXPECT_EQ(fill_evenly(std::array<double, 4>{2, 1, 1, 1}, 2), std::vector<int>{2});
  EXPECT_EQ(fill_evenly(std::array<double, 3>{0, 0, 0}, 2), std::vector<int>{2});
}

/// Seven nodes and the loss. The first three are slow, the last three have the parameters.
Model uneven_model() {
  std::vector<ChainNode> nodes(7, {1, 1, 1, 1, 1});
  for (const int n : {0, 1, 2}) nodes[n] = {100, 100, 100, 1, 1};
  for (const int n : {4, 5, 6}) nodes[n].elements = 1000;
  Model model = make_chain(nodes);
  for (std::size_t p = 0; p < model.graph.nodes.size(); ++p) {
    model.graph.nodes[p].name = (p < 1 ? "a/" : "b/") + std::to_string(p);
  }
  model.profile.graph_sha256 = graph::graph_sha256(model.graph);
  return model;
}

TEST(Balance, EachIsWhatItsNameSays) {
  const Model given = uneven_model();
  const auto cuts = [&](Balance balance, Objective objective = Objective::kSpeed) {
    return balanced_cuts(given.graph, given.profile,
                         {.balance = balance, .num_stages = 2, .objective = objective});
  };
  EXPECT_EQ(cuts(Balance::kUniform), std::vector<int>{4});
  EXPECT_EQ(cuts(Balance::kParameters), std::vector<int>{5});
  EXPECT_EQ(cuts(Balance::kTree), std::vector<int>{2});  // b has both stages, a joins the first.
  EXPECT_EQ(cuts(Balance::kTree, Objective::kMemory), std::vector<int>{5});
}

TEST(Balance, APlanSaysWhatMadeIt) {
  const Model given = uneven_model();
  PartitionOptions options{.batch = {8, 1, 1}, .balance = Balance::kParameters};
  const layout::Plan plan = partition(given.graph, given.profile, make_topology(2), options);
  EXPECT_EQ(plan.stages[1].begin, 5);
  EXPECT_EQ(plan.balance, Balance::kParameters);
  EXPECT_THAT(layout::schedule_text(plan), HasSubstr(", cuts by balance parameters"));
  options.balance = Balance::kSearch;
  const layout::Plan searched = partition(given.graph, given.profile, make_topology(2), options);
  EXPECT_LT(searched.prediction->step_ms, plan.prediction->step_ms);
  EXPECT_EQ(layout::schedule_text(searched).find("balance"), std::string::npos);
  options.balance = Balance::kTree;
  options.cuts = {2};
  EXPECT_THAT(
      trireme::test::error_of([&] {
        partition(given.graph, given.profile, make_topology(2), options);
      }).message(),
      HasSubstr("the balance tree says where all cuts fall; leave out --cut-at and --stage-of"));
}

/// A cut falls only where it may: the write forbids those in the middle.
TEST(Balance, CutsFallWhereTheyMay) {
  graph::testing::GraphBuilder b;
  graph::ValueId h = b.input("x", {4});
  for (int n = 0; n < 3; ++n) {
    h = b.node("mul", {h, b.parameter("p" + std::to_string(n), {10})}, b.batch({4}));
  }
  for (int n = 3; n < 6; ++n) h = b.write("add_", {h});
  b.loss(b.node("mul", {h, b.parameter("q", {40})}, b.batch({4})));
  const profile::Profile profile = layout::testing::make_free_profile(b.graph());
  for (const Balance balance : {Balance::kUniform, Balance::kParameters, Balance::kTree}) {
    const std::vector<int> cuts =
        balanced_cuts(b.graph(), profile, {.balance = balance, .num_stages = 3});
    ASSERT_EQ(cuts.size(), 2U);
    for (const int cut : cuts) EXPECT_TRUE(cut < 3 || cut > 5) << cut;
  }
}

}  // namespace
}  // namespace trireme::partition
