#include "trireme/plan/layout/plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using ::testing::HasSubstr;

constexpr const char* kHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

std::string complaint(const Graph& graph, Plan plan, const std::function<void(Plan&)>& change) {
  change(plan);
  try {
    check(plan, kHash, graph);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

/// The MLP in two stages: linear, relu | linear, loss.
std::string mlp(const std::function<void(Plan&)>& change) {
  const Graph graph = graph::testing::make_mlp();
  return complaint(graph, make_manual_plan(graph, kHash, std::array{2}, {16, 2, 4}), change);
}

TEST(PlanCheck, AcceptsAManualPlan) {
  EXPECT_EQ(mlp([](Plan&) {}), "");
}

TEST(PlanCheck, APlanOfAnotherGraphSaysBothHashes) {
  const std::string text = mlp([](Plan& plan) { plan.graph_sha256 = std::string(64, 'f'); });
  EXPECT_THAT(text, HasSubstr("made for another graph"));
  EXPECT_THAT(text, HasSubstr(std::string(64, 'f')));
  EXPECT_THAT(text, HasSubstr(kHash));
  EXPECT_THAT(text, HasSubstr("make the plan again"));
}

/// Its order of nodes and its copies are of nodes that this graph does not have.
TEST(PlanCheck, APlanOfAnotherGraphIsRefusedForThatFirst) {
  const Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, kHash, std::array{2}, {16, 2, 4});
  plan.node_order = {100, 101};
  plan.copied_nodes = {102};
  try {
    checked_graph(graph, plan);
    FAIL() << "the plan is not of this graph";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("made for another graph"));
  }
  plan = make_manual_plan(graph, graph::graph_sha256(graph), std::array{2}, {16, 2, 4});
  EXPECT_EQ(checked_graph(graph, plan), graph);
  plan.batch.microbatch = 3;
  EXPECT_THROW(checked_graph(graph, plan), Error);
}

TEST(PlanCheck, TheBatchDivides) {
  EXPECT_THAT(mlp([](Plan& p) { p.batch.microbatch = 3; }),
              HasSubstr("a microbatch of 3 samples does not divide the global batch of 16"));
  EXPECT_THAT(mlp([](Plan& p) { p.batch.lanes = 3; }),
              HasSubstr("3 lanes do not divide the 8 microbatches"));
  for (const BatchLayout& bad : {BatchLayout{0, 1, 1}, BatchLayout{1, 0, 1}, BatchLayout{1, 1, 0},
                                 BatchLayout{-4, -2, 1}, BatchLayout{kMaxBatch + 1, 1, 1}}) {
    EXPECT_THAT(mlp([&](Plan& p) { p.batch = bad; }), HasSubstr("must be from 1 to"));
  }
}

TEST(PlanCheck, StagesCoverTheNodes) {
  EXPECT_THAT(mlp([](Plan& p) { p.stages[1].begin = 3; }),
              HasSubstr("stage 1 should begin at position 2, but begins at 3"));
  EXPECT_THAT(mlp([](Plan& p) { p.stages[0].end = 0; }), HasSubstr("is empty"));
  EXPECT_THAT(mlp([](Plan& p) { p.stages[1].end = 5; }), HasSubstr("beyond the 4 nodes"));
  EXPECT_THAT(mlp([](Plan& p) { p.stages[1].end = 3; }), HasSubstr("end at position 3 of 4"));
  EXPECT_THAT(mlp([](Plan& p) { p.stages.clear(); }), HasSubstr("no stages"));
  EXPECT_THAT(mlp([](Plan& p) { p.schedule.name.clear(); }), HasSubstr("schedule has no name"));
}

TEST(PlanCheck, WhoShardsParametersShardsState) {
  EXPECT_THAT(mlp([](Plan& p) { p.bucket_bytes = 0; }),
              HasSubstr("bucket_bytes must be at least 1"));
  EXPECT_THAT(mlp([](Plan& p) { p.threads = 0; }), HasSubstr("threads must be at least 1"));
  EXPECT_EQ(mlp([](Plan& p) { p.sharded_state = p.sharded_parameters = true; }), "");
  EXPECT_THAT(mlp([](Plan& p) { p.sharded_parameters = true; }),
              HasSubstr("sharded_parameters is true and sharded_state is not"));
}

TEST(PlanCheck, CutsAreAllowed) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId p = b.parameter("p", {4});
  const ValueId h = b.node("mul", {x, p}, b.batch({4}));
  b.write("relu_", {h});
  b.loss(h);
  try {
    make_manual_plan(b.graph(), kHash, std::array{1}, {4, 2, 1});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("no cut may fall at position 1"));
    EXPECT_THAT(error.message(), HasSubstr("written in place"));
    EXPECT_THAT(error.message(), HasSubstr("node 1 'relu_'"));
  }
}

TEST(PlanCheck, MeshesArePlaced) {
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].placement.pop_back(); }),
              HasSubstr("placement has 1 ranks, but the mesh is 2 x 1 x 1"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].placement = {1, 1}; }),
              HasSubstr("rank 1 is placed at positions 0 and 1 of the pipeline; a rank runs one"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].placement = {0, -1}; }), HasSubstr("negative"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].mesh.shard = 0; }), HasSubstr("below 1"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].name = "tain"; }), HasSubstr("no role 'train'"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles.push_back(p.roles[0]); }), HasSubstr("appears twice"));
  EXPECT_THAT(mlp([](Plan& p) {
                p.roles[0].mesh.pipeline = 3;
                p.roles[0].placement = {0, 1, 2};
              }),
              HasSubstr("2 stages for a pipeline of 3: none runs at position 2"));
  EXPECT_THAT(mlp([](Plan& p) {
                p.roles[0].mesh = {2, 3, 1};
                p.roles[0].placement = {0, 1, 2, 3, 4, 5};
              }),
              HasSubstr("3 data replicas do not divide the 4 lanes"));
  EXPECT_EQ(mlp([](Plan& p) {
              p.roles[0].mesh = {1, 4, 1};
              p.roles[0].placement = {3, 2, 1, 0};
              p.stages[1].position = 0;
            }),
            "");
  EXPECT_THAT(mlp([](Plan& p) { p.stages[0].position = 2; }),
              HasSubstr("stage 0 runs at position 2 of a pipeline of 2"));
  EXPECT_THAT(mlp([](Plan& p) { p.stages[0].position = 1; }), HasSubstr("none runs at position 0"));
  constexpr int kHuge = 1 << 30;
  EXPECT_THAT(mlp([](Plan& p) { p.roles[0].mesh = {kHuge, kHuge, kHuge}; }),
              HasSubstr("placement"));
}

TEST(PlanCheck, ARankMayRunSeveralReplicasOfItsPosition) {
  const auto placed = [](int data, const std::vector<int>& placement) {
    return mlp([&](Plan& p) {
      p.roles[0].mesh = {2, data, 1};
      p.roles[0].placement = placement;
    });
  };
  EXPECT_EQ(placed(2, {0, 1, 2, 2}), "");
  EXPECT_EQ(placed(2, {0, 0, 1, 2}), "");
  EXPECT_EQ(placed(2, {0, 0, 1, 1}), "");
  EXPECT_EQ(placed(4, {3, 3, 0, 0, 1, 1, 1, 1}), "");
  EXPECT_THAT(placed(2, {0, 1, 1, 2}), HasSubstr("rank 1 is placed at positions 0 and 1"));
  EXPECT_THAT(placed(4, {0, 1, 2, 3, 4, 4, 4, 5}),
              HasSubstr("at position 1 rank 4 runs 3 of the 4 replicas and rank 5 runs 1; give the "
                        "ranks of a position as many each"));
  EXPECT_THAT(placed(4, {0, 1, 2, 3, 4, 5, 4, 5}),
              HasSubstr("at position 1 a rank runs replicas that are not one behind the other"));
  EXPECT_THAT(placed(2, {0, 1, -2, -2}), HasSubstr("negative"));
  EXPECT_THAT(mlp([](Plan& p) {
                p.roles[0] = {"train", {2, 2, 1}, {0, 1, 2, 2}};
                p.sharded_state = true;
              }),
              HasSubstr("sharded_state is true and some ranks run several replicas"));
}

TEST(PlanCheck, RolesTellTheirRanks) {
  const Role role{"train", {3, 4, 1}, {0, 1, 2, 3, 7, 7, 5, 5, 4, 4, 4, 4}};
  EXPECT_EQ(role.num_ranks(), 7);
  EXPECT_FALSE(role.is_even());
  EXPECT_EQ(role.ranks_at(0), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(role.ranks_at(1), (std::vector<int>{7, 5}));
  EXPECT_EQ(role.ranks_at(2), std::vector<int>{4});
  EXPECT_EQ(role.replicas_per_rank(0), 1);
  EXPECT_EQ(role.replicas_per_rank(1), 2);
  EXPECT_EQ(role.replicas_per_rank(2), 4);
  EXPECT_TRUE((Role{"train", {2, 2, 1}, {3, 1, 2, 0}}).is_even());
}

/// Stage 0: mask = ne(x); drop = rand(); scaled = mul(mask, frozen); mean = add_(statistics);
/// h = mul(x, p); late = add(x, x). Stage 1: uses of them.
struct CopyModel {
  CopyModel() {
    GraphBuilder b;
    const ValueId x = b.input("x", {4});
    const ValueId p = b.parameter("p", {4});
    const ValueId frozen = b.frozen("frozen", {4});
    const ValueId statistics = b.buffer("statistics", {4}, graph::BufferPolicy::kBatchNorm);
    const ValueId mask = b.node("ne", {x}, b.batch({4}));                  // 0
    b.node("rand_like", {x}, b.batch({4}), {.flags = {.random = true}});   // 1
    b.node("mul", {mask, frozen}, b.batch({4}));                           // 2
    b.write("add_", {statistics, x}, {.flags = {.grad_mode = false}});     // 3
    const ValueId h = b.node("mul", {x, p}, b.batch({4}));                 // 4
    b.node("argmax", {p}, b.fixed({1}), {.flags = {.grad_mode = false}});  // 5
    const ValueId t = b.node("add", {x, x}, b.batch({4}));                 // 6
    b.node("neg", {t}, b.batch({4}));                                      // 7
    b.write("relu_", {t});                                                 // 8
    b.node("abs", {t}, b.batch({4}));                                      // 9
    b.loss(b.node("mul", {h, mask}, b.batch({4})));                        // 10, 11
    graph = b.graph();
    plan = make_manual_plan(graph, kHash, std::array{10}, {4, 2, 1});
  }

  std::string copying(std::vector<graph::NodeId> copies) const {
    return complaint(graph, plan, [&](Plan& p) { p.stages[1].copies = std::move(copies); });
  }

  Graph graph;
  Plan plan;
};

TEST(PlanCheck, CopiesGiveWhatTheOriginalGave) {
  const CopyModel model;
  EXPECT_EQ(model.copying({0}), "");
  EXPECT_EQ(model.copying({0, 1, 2, 9}), "");
  EXPECT_THAT(model.copying({3}),
              HasSubstr("node 3 'add_' (aten::add_) cannot be copied: it writes"));
  EXPECT_THAT(model.copying({4}), HasSubstr("uses the trainable parameter 'p'"));
  EXPECT_THAT(model.copying({5}), HasSubstr("uses the trainable parameter 'p'"));
  EXPECT_THAT(model.copying({6}), HasSubstr("is written later by node 8"));
  EXPECT_THAT(model.copying({7}), HasSubstr("is written later by node 8"));
  EXPECT_THAT(model.copying({2, 0}), HasSubstr("node 0 is not in execution order"));
  EXPECT_THAT(model.copying({0, 0}), HasSubstr("not in execution order"));
  EXPECT_THAT(model.copying({10}), HasSubstr("node 10 is not of an earlier stage"));
  EXPECT_THAT(model.copying({77}), HasSubstr("there is no node 77"));
}

// A later stage gets the batch as it was at first, so a copy there would miss the write.
TEST(PlanCheck, ACopyDoesNotReadABatchThatWasWritten) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId y = b.input("y", {4});
  b.write("relu_", {x});
  const ValueId mask = b.node("ne", {x}, b.batch({4}));
  const ValueId h = b.node("mul", {y, b.parameter("p", {4})}, b.batch({4}));
  b.loss(b.node("mul", {h, mask}, b.batch({4})));
  const Plan plan = make_manual_plan(b.graph(), kHash, std::array{3}, {4, 2, 1});
  EXPECT_THAT(complaint(b.graph(), plan, [](Plan& p) { p.stages[1].copies = {1}; }),
              HasSubstr("value 0 is written before by node 0 'relu_'"));
}

TEST(PlanCheck, ACopyNeedsNoGradient) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId h = b.node("mul", {x, b.parameter("p", {4})}, b.batch({4}));
  const ValueId g = b.node("neg", {h}, b.batch({4}));
  b.loss(g);
  const Plan plan = make_manual_plan(b.graph(), kHash, std::array{2}, {4, 2, 1});
  EXPECT_THAT(complaint(b.graph(), plan, [](Plan& p) { p.stages[1].copies = {1}; }),
              HasSubstr("an output needs a gradient"));
}

// add_ writes into what the stage before made, or into a buffer; relu_ into what it made itself.
TEST(PlanCheck, AStageThatChangesMemoryOfOthersCannotRecompute) {
  const auto refusal = [](graph::BufferPolicy policy, bool is_own) {
    GraphBuilder b;
    const ValueId x = b.node("mul", {b.input("x", {4}), b.parameter("p", {4})}, b.batch({4}));
    const ValueId h = is_own ? b.node("neg", {x}, b.batch({4})) : b.buffer("seen", {4}, policy);
    const ValueId y = b.write("add_", {h, x});
    b.loss(b.node("mul", {x, y}, b.batch({4})));
    Plan plan = make_manual_plan(b.graph(), kHash, std::array{1}, {4, 2, 1});
    plan.stages[1].recompute = true;
    return why_not_recomputed(b.graph(), plan, 1);
  };
  EXPECT_EQ(refusal(graph::BufferPolicy::kReadOnly, true), "");
  EXPECT_EQ(refusal(graph::BufferPolicy::kBatchNorm, false), "");
  EXPECT_THAT(refusal(graph::BufferPolicy::kEager, false),
              HasSubstr("writes into memory that the stage does not make"));
}

TEST(PlanCheck, RegionsAreOfStagesThatRecomputeAndBeginWhereCutsMay) {
  const auto with_regions = [](std::vector<int> regions) {
    return mlp([&](Plan& p) {
      p.stages[1].recompute = true;
      p.stages[1].regions = std::move(regions);
    });
  };
  EXPECT_EQ(with_regions({3}), "");
  EXPECT_THAT(mlp([](Plan& p) { p.stages[1].regions = {3}; }),
              HasSubstr("stage 1: it has regions, but does not recompute"));
  for (const std::vector<int>& outside : {std::vector{2}, {4}, {3, 3}, {-1}}) {
    EXPECT_THAT(with_regions(outside),
                HasSubstr("regions but the first begin behind one another, from 3 to 3"));
  }
  GraphBuilder b;
  const ValueId x = b.node("mul", {b.input("x", {4}), b.parameter("p", {4})}, b.batch({4}));
  b.loss(b.write("relu_", {x}));
  EXPECT_THAT(complaint(b.graph(), make_manual_plan(b.graph(), kHash, {}, {4, 2, 1}),
                        [](Plan& p) {
                          p.stages[0].recompute = true;
                          p.stages[0].regions = {1};
                        }),
              HasSubstr("stage 0: no region may begin at position 1: "));
}

TEST(PlanCheck, WhatWasAcceptedAndThenIgnoredIsRefused) {
  EXPECT_THAT(mlp([](Plan& p) {
                p.roles[0].mesh.shard = 2;
                p.roles[0].placement = {0, 1, 2, 3};
              }),
              HasSubstr("role 'train': mesh.shard is 2; tensors are not sharded so far"));
  EXPECT_THAT(mlp([](Plan& p) { p.roles.push_back({"reader", {1, 1, 1}, {2}}); }),
              HasSubstr("role 'reader': ranks do nothing but train so far; remove the role"));
}

TEST(PlanCheck, TieOwnersUseTheParameter) {
  EXPECT_EQ(mlp([](Plan& p) { p.tie_owners = {{"2.weight", 1}}; }), "");
  EXPECT_THAT(
      mlp([](Plan& p) { p.tie_owners = {{"2.weight", 0}}; }),
      HasSubstr("tie owner of '2.weight': stage 0 does not use it; the first that does is 1"));
  EXPECT_THAT(mlp([](Plan& p) { p.tie_owners = {{"weight", 0}}; }), HasSubstr("no such parameter"));
  EXPECT_THAT(mlp([](Plan& p) { p.tie_owners = {{"2.weight", 1}, {"2.weight", 1}}; }),
              HasSubstr("given twice"));
}

}  // namespace
}  // namespace trireme::layout
