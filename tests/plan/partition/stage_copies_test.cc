#include "trireme/plan/partition/stage_copies.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/partition.h"

namespace trireme::partition {
namespace {

using graph::NodeId;
using graph::ValueId;
using graph::testing::GraphBuilder;
using layout::testing::make_free_profile;
using layout::testing::make_plan;
using layout::testing::make_topology;

profile::LinkKind on_host(int /*from*/, int /*to*/) { return profile::LinkKind::kHost; }

/// x -> mask = invert(ne(x)) -> h = x * p | h * mask -> loss: the mask crosses a cut at 3.
struct MaskModel {
  MaskModel() {
    GraphBuilder b;
    const ValueId x = b.input("x", {16});
    ValueId mask = b.node("ne", {x}, b.batch({16}));                              // 0
    mask = b.node("logical_not", {mask}, b.batch({16}));                          // 1
    const ValueId h = b.node("mul", {x, b.parameter("p", {16})}, b.batch({16}));  // 2
    b.loss(b.node("mul", {h, mask}, b.batch({16})));                              // 3, 4
    graph = b.graph();
    profile = make_free_profile(graph);
    profile.costs[0].forward_us = 2;
    profile.costs[1].forward_us = 3;
    plan = make_plan(graph, {{3}});
  }

  std::vector<NodeId> copies(double link_us) {
    profile.links = {{profile::LinkKind::kHost, {{0, link_us, link_us}}}};
    plan = make_plan(graph, {{3}});
    add_stage_copies(graph, profile, on_host, plan);
    layout::check(plan, plan.graph_sha256, graph);
    return plan.stages[1].copies;
  }

  graph::Graph graph;
  profile::Profile profile;
  layout::Plan plan;
};

TEST(StageCopies, AreMadeWhereTheyTakeLessThanSending) {
  MaskModel model;
  EXPECT_EQ(model.copies(6), (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(model.copies(5), std::vector<NodeId>{});
  model.profile.step.copy_ns_per_byte = 100;  // 64 bytes: 6.4 us.
  EXPECT_EQ(model.copies(0), (std::vector<NodeId>{0, 1}));
}

TEST(StageCopies, OfWhatIsWrittenOrHasParametersAreNotMade) {
  MaskModel model;
  model.graph.nodes[1].op = "opaque";
  EXPECT_EQ(model.copies(100), std::vector<NodeId>{});
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId h = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
  const ValueId mask = b.node("ne", {h}, b.batch({4}), {.flags = {.grad_mode = false}});
  b.loss(b.node("mul", {h, mask}, b.batch({4})));
  layout::Plan plan = make_plan(b.graph(), {{2}});
  profile::Profile profile = make_free_profile(b.graph());
  profile.links = {{profile::LinkKind::kHost, {{0, 100, 100}}}};
  add_stage_copies(b.graph(), profile, on_host, plan);
  EXPECT_TRUE(plan.stages[1].copies.empty());
}

/// A position bias as T5 has it: bucket -> embedding -> permute, used by three blocks.
struct BiasModel {
  explicit BiasModel(double bias_us) {
    GraphBuilder b;
    const ValueId x = b.input("x", {8});
    const ValueId table = b.parameter("table", {32, 8});
    ValueId bias = b.node("bucket", {}, b.fixed({64}));                     // 0
    bias = b.node("embedding", {table, bias}, b.fixed({64, 8}));            // 1
    bias = b.node("permute", {bias}, b.fixed({8, 64}), {.view_of = bias});  // 2
    ValueId h = x;
    for (int block = 0; block < 3; ++block) {
      h = b.node("linear", {h, b.parameter("w" + std::to_string(block), {8, 8})}, b.batch({8}));
      h = b.node("add", {h, bias}, b.batch({8}));
    }
    b.loss(h);
    graph = b.graph();
    profile = make_free_profile(graph);
    for (const int linear : {3, 5, 7}) {
      profile.costs[linear] = {"linear", 100, 100, 100, 0, {0}, {}, 0, 0, 0};
    }
    profile.costs[1] = {"embedding", bias_us, 0, bias_us, 0, {}, {}, 0, 0, 0};
  }

  layout::Plan plan(double link_us, double copy_ns_per_byte) {
    profile.links = {{profile::LinkKind::kHost, {{0, 0, 0}, {2048, link_us, link_us}}}};
    profile.step.copy_ns_per_byte = copy_ns_per_byte;
    return partition(graph, profile, make_topology(3),
                     {.batch = {12, 1, 1}, .schedule = "interleaved"});
  }

  graph::Graph graph;
  profile::Profile profile;
};

TEST(CopiedNodes, TheBiasIsACandidate) {
  const BiasModel model(1);
  EXPECT_EQ(copy_candidates(model.graph, model.profile),
            (std::vector<std::vector<NodeId>>{{0, 1, 2}}));
  EXPECT_TRUE(copy_candidates(BiasModel(200).graph, BiasModel(200).profile).empty());
}

TEST(CopiedNodes, TheBiasIsCopiedOrSentByPrice) {
  EXPECT_EQ(BiasModel(1).plan(200, 10).copied_nodes, (std::vector<NodeId>{0, 1, 2}));
  EXPECT_EQ(BiasModel(15).plan(0.001, 0).copied_nodes, std::vector<NodeId>{});
}

}  // namespace
}  // namespace trireme::partition
