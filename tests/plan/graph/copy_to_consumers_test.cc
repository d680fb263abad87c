#include "trireme/plan/graph/copy_to_consumers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;

/// Each node as `id(inputs)=outputs`, a copy's original after `~`: `3~1(0,5)=6`.
std::string picture(const Graph& graph) {
  std::string text;
  const auto join = [&text](const std::vector<ValueId>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(ids[i]);
    }
  };
  for (const Node& node : graph.nodes) {
    text += (text.empty() ? "" : " ") + std::to_string(node.id);
    if (node.copy_of >= 0) text += "~" + std::to_string(node.copy_of);
    text += "(";
    join(input_values(node));
    text += ")=";
    join(node.outputs);
  }
  return text;
}

std::string refusal(const Graph& graph, const std::vector<NodeId>& nodes) {
  try {
    copy_to_consumers(graph, nodes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

/// A position bias as T5 has it: a = bucket(), b = embedding(table, a), used by three blocks.
GraphBuilder bias_model() {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});                                 // value 0
  const ValueId table = b.parameter("table", {32, 8});                 // 1
  const ValueId a = b.node("bucket", {}, b.fixed({8}));                // node 0, value 2
  const ValueId bias = b.node("embedding", {table, a}, b.fixed({8}));  // node 1, value 3
  ValueId h = b.node("add", {x, bias}, b.batch({8}));                  // node 2, value 4
  h = b.node("relu", {h}, b.batch({8}));                               // node 3, value 5
  h = b.node("add", {h, bias}, b.batch({8}));                          // node 4, value 6
  h = b.node("stack", {}, b.batch({8}),
             {.constants = {{ArgumentList{{ValueRef{h}}, {ValueRef{bias}}}}}});  // node 5, value 7
  b.graph().values[h].requires_grad = true;
  b.loss(h);  // node 6, value 8
  return b;
}

TEST(Copies, RunOncePerConsumer) {
  const Graph graph = bias_model().graph();
  check(graph);
  EXPECT_EQ(picture(graph), "0()=2 1(1,2)=3 2(0,3)=4 3(4)=5 4(5,3)=6 5(6,3)=7 6(7)=8");
  const Graph copied = copy_to_consumers(graph, std::array{0, 1});
  check(copied);
  EXPECT_EQ(picture(copied),
            "0()=2 1(1,2)=3 2(0,3)=4 3(4)=5 "
            "7~0()=9 8~1(1,9)=10 4(5,10)=6 "
            "9~0()=11 10~1(1,11)=12 5(6,12)=7 6(7)=8");
  EXPECT_EQ(copied.nodes[5].name, "embedding/copy2");
  EXPECT_EQ(copied.nodes[8].name, "embedding/copy3");
  EXPECT_EQ(use_sites(copied), (std::vector<UseSite>{{0, 0, {1}}, {0, 1, {8}}, {0, 2, {10}}}));
}

TEST(Copies, OfThePartThatIsNeededOnly) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId a = b.node("a", {}, b.fixed({8}));
  const ValueId c = b.node("c", {a}, b.fixed({8}));
  b.node("uses_a", {x, a}, b.batch({8}));
  b.node("uses_c", {x, c}, b.batch({8}));
  b.graph().mode = Mode::kEval;
  // c keeps its id at its first run, which is fed by the second run of a.
  const Graph copied = copy_to_consumers(b.graph(), std::array{1, 0});
  check(copied);
  EXPECT_EQ(picture(copied), "0()=1 2(0,1)=3 4~0()=5 1(5)=2 3(0,2)=4");
}

TEST(Copies, OfNothingChangeNothing) {
  const Graph graph = testing::make_rich_graph();
  EXPECT_EQ(copy_to_consumers(graph, {}), graph);
}

TEST(Copies, OneConsumerMovesTheNodeAndCopiesNothing) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId a = b.node("a", {}, b.fixed({8}));
  const ValueId h = b.node("relu", {x}, b.batch({8}));
  b.node("add", {h, a}, b.batch({8}));
  b.graph().mode = Mode::kEval;
  const Graph copied = copy_to_consumers(b.graph(), std::array{0});
  EXPECT_EQ(picture(copied), "1(0)=2 0()=1 2(2,1)=3");
}

TEST(Copies, HaveMemoryOfTheirOwnAndSoHaveTheirViews) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId a = b.node("a", {}, b.fixed({8}));
  const ValueId view = b.node("view", {a}, b.fixed({8}), {.view_of = a});
  const ValueId table = b.buffer("table", {8});
  const ValueId row = b.node("select", {table}, b.fixed({8}), {.view_of = table});
  b.node("add", {x, view, row}, b.batch({8}));
  const ValueId late = b.node("view", {view}, b.fixed({8}), {.view_of = a});
  b.node("add", {x, late, row}, b.batch({8}));
  b.graph().mode = Mode::kEval;
  const Graph copied = copy_to_consumers(b.graph(), std::array{0, 1, 2});
  check(copied);
  const auto storage = [&](const std::string& name, std::size_t occurrence) {
    for (const Node& node : copied.nodes) {
      if (node.name.starts_with(name) && occurrence-- == 0) {
        return copied.values[node.outputs[0]].storage_id;
      }
    }
    return -1;
  };
  EXPECT_EQ(storage("a", 0), storage("view", 0));
  EXPECT_NE(storage("a", 0), b.graph().values[table].storage_id);
  const int second = copied.values[late].storage_id;
  EXPECT_NE(second, copied.values[a].storage_id) << "the late view is one of a copy";
  EXPECT_EQ(storage("select", 0), b.graph().values[table].storage_id);
}

TEST(Copies, ShareTheStreamOfARandomNode) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId noise = b.node("rand_like", {x}, b.batch({8}), {.flags = {.random = true}});
  b.node("add", {x, noise}, b.batch({8}));
  b.node("mul", {x, noise}, b.batch({8}));
  b.graph().mode = Mode::kEval;
  const Graph copied = copy_to_consumers(b.graph(), std::array{0});
  EXPECT_EQ(picture(copied), "0(0)=1 1(0,1)=2 3~0(0)=4 2(0,4)=3");
  EXPECT_TRUE(copied.nodes[2].flags.random);
}

TEST(Copies, MakeCutsCheap) {
  const Graph graph = bias_model().graph();
  const Graph copied = copy_to_consumers(graph, std::array{0, 1});
  const std::vector<bool> allowed = allowed_cuts(copied);
  for (std::size_t cut = 1; cut < copied.nodes.size(); ++cut) EXPECT_TRUE(allowed[cut]) << cut;
}

TEST(Copies, RefuseWhatDependsOnTheMoment) {
  EXPECT_THAT(refusal(testing::make_mlp(), {17}), HasSubstr("no such node"));
  EXPECT_THAT(refusal(testing::make_mlp(), {3}), HasSubstr("computes a loss"));

  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId statistics = b.buffer("statistics", {8}, BufferPolicy::kEager);
  const ValueId a = b.node("a", {x}, b.batch({8}));  // node 0
  b.write("relu_", {a});                             // node 1
  b.node("b", {statistics}, b.fixed({8}));           // node 2
  const ValueId c = b.node("c", {x}, b.batch({8}));  // node 3
  b.node("d", {c}, b.batch({8}));                    // node 4
  b.write("add_", {x});                              // node 5
  b.node("e", {c}, b.batch({8}));                    // node 6
  b.graph().mode = Mode::kEval;
  check(b.graph());
  EXPECT_THAT(refusal(b.graph(), {0}), HasSubstr("is written later by node"));
  EXPECT_THAT(refusal(b.graph(), {1}), HasSubstr("it writes in place"));
  EXPECT_THAT(refusal(b.graph(), {2}), HasSubstr("reads the buffer 'statistics'"));
  EXPECT_THAT(refusal(b.graph(), {3}), HasSubstr("value 0 is written later by node 5 'add_'"));
  EXPECT_THAT(refusal(b.graph(), {6}), HasSubstr("nothing consumes it"));

  const Graph once = copy_to_consumers(bias_model().graph(), std::array{0, 1});
  EXPECT_THAT(refusal(once, {8}), HasSubstr("it is a copy already"));
}

TEST(Copies, OfRandomGraphsPassTheCheck) {
  int num_copied = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Graph graph = testing::make_random_graph(seed, 25);
    for (const Node& node : graph.nodes) {
      try {
        const Graph copied = copy_to_consumers(graph, std::array{node.id});
        ASSERT_NO_THROW(check(copied)) << "seed " << seed << ", node " << node.id;
        ++num_copied;
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::kInvalidArgument) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(num_copied, 500);
}

/// Twelve blocks, as T5 has: without sites of their own no cut could fall between the copies.
TEST(Copies, OfAParameterAreASiteEachHoweverMany) {
  GraphBuilder b;
  ValueId h = b.input("x", {8});
  const ValueId table = b.parameter("table", {32, 8});
  const ValueId bias = b.node("embedding", {table}, b.fixed({8}));
  for (int block = 0; block < 12; ++block) h = b.node("add", {h, bias}, b.batch({8}));
  b.loss(h);
  const Graph copied = copy_to_consumers(b.graph(), std::array<NodeId, 1>{0});
  EXPECT_EQ(use_sites(copied).size(), 12U);
  const std::vector<bool> cuts = allowed_cuts(copied);
  EXPECT_EQ(std::count(cuts.begin(), cuts.end(), true),
            static_cast<std::ptrdiff_t>(copied.nodes.size()) - 1);
}

}  // namespace
}  // namespace trireme::graph
