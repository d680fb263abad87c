#include "trireme/plan/graph/node_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/random_order.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"

namespace trireme::graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;
using Later = std::vector<std::vector<int>>;

/// Two branches of two nodes each over `x`, then their sum and the loss.
Graph branches(bool has_gradient) {
  GraphBuilder b;
  ValueId x = b.input("x", {4});
  if (has_gradient) x = b.node("mul", {x, b.parameter("w", {4})}, b.batch({4}));  // Node 0.
  const auto branch = [&](const std::string& name) {
    const ValueId w = b.parameter(name, {4});
    return b.node("relu", {b.node("mul", {x, w}, b.batch({4}))}, b.batch({4}));
  };
  const ValueId left = branch("left");
  const ValueId right = branch("right");
  b.loss(b.node("add", {left, right}, b.batch({4})));
  return b.graph();
}

std::string refusal_of_order(const Graph& graph, const std::vector<NodeId>& order) {
  try {
    reordered(graph, order);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

std::vector<NodeId> node_ids(const Graph& graph) {
  std::vector<NodeId> result;
  for (const Node& node : graph.nodes) result.push_back(node.id);
  return result;
}

TEST(NodeOrder, BranchesOfTheBatchAreFree) {
  // 0 mul, 1 relu; 2 mul, 3 relu; 4 add, 5 loss
  EXPECT_EQ(later_nodes(branches(false)), (Later{{1}, {4}, {3}, {4}, {5}, {}}));
}

/// The gradient of what both take is the second branch's, then the first one's is added.
TEST(NodeOrder, UsesOfAValueWithAGradientKeepTheirs) {
  EXPECT_EQ(later_nodes(branches(true)), (Later{{1, 3}, {2, 3}, {5}, {4}, {5}, {6}, {}}));
}

TEST(NodeOrder, WhatTouchesWrittenMemoryKeepsItsOrder) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId y = b.node("ne", {x}, b.batch({4}));       // 0
  const ValueId before = b.node("ne", {y}, b.batch({4}));  // 1
  b.write("add_", {y, x});                                 // 2
  const ValueId after = b.node("ne", {y}, b.batch({4}));   // 3
  const ValueId w = b.parameter("w", {4});
  b.loss(b.node("cat", {w, before, after}, b.batch({4})));  // 4, 5
  EXPECT_EQ(later_nodes(b.graph()), (Later{{1, 2, 3}, {2, 4}, {3}, {4}, {5}, {}}));
}

TEST(NodeOrder, NodesRunInTheOrderThatIsGiven) {
  Graph graph = branches(false);
  graph.shorter = {graph};
  const std::vector<NodeId> order = {2, 0, 3, 1, 4, 5};
  const Graph other = reordered(graph, order);
  EXPECT_EQ(node_ids(other), order);
  EXPECT_EQ(node_ids(other.shorter[0]), order);
  EXPECT_EQ(other.nodes[0], graph.nodes[2]);
  EXPECT_EQ(other.values, graph.values);
  EXPECT_EQ(reordered(other, node_ids(graph)), graph);
}

TEST(NodeOrder, OthersAreRefused) {
  const Graph graph = branches(true);
  EXPECT_THAT(refusal_of_order(graph, {0, 3, 1, 2, 4, 5, 6}), HasSubstr("must run after node 1"));
  EXPECT_THAT(refusal_of_order(graph, {0, 1, 2}), HasSubstr("3 of the graph's 7 nodes"));
  EXPECT_THAT(refusal_of_order(graph, {0, 1, 1, 2, 3, 4, 5}), HasSubstr("node 1 is there twice"));
  EXPECT_THAT(refusal_of_order(graph, {0, 1, 2, 3, 4, 5, 9}), HasSubstr("no node 9"));
}

/// A graph of many kinds of nodes stays one that passes its check.
TEST(NodeOrder, AnyOrderThatIsAllowedPassesTheCheck) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Graph graph = testing::make_rich_graph();
  for (int round = 0; round < 50; ++round) {
    check(reordered(graph, testing::random_order(random, graph)));
  }
}

}  // namespace
}  // namespace trireme::graph
