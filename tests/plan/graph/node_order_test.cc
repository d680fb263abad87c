#include "trireme/plan/graph/node_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/random_order.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

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

/// Nodes that add two of the values before them, of the batch or of parameters; then a loss of the last one.
Graph random_sums(std::mt19937& random) {
  GraphBuilder b;
  std::vector<ValueId> values = {b.input("x", {4})};
  for (const char* name : {"p", "q"}) values.push_back(b.parameter(name, {4}));
  for (int n = 0; n < 8; ++n) {
    const auto any = [&] { return values[random() % values.size()]; };
    const ValueId one = any();
    values.push_back(b.node("add", {one, any()}, b.batch({4})));
  }
  b.loss(b.node("mul", {values.back(), values[0]}, b.batch({4})));
  return b.graph();
}

/// Who uses each value with a gradient that copies leave as it is: recorded node and the consumer that it runs for.
using Uses = std::map<ValueId, std::vector<std::pair<NodeId, NodeId>>>;

Uses uses_with_copies(const Graph& graph, const std::vector<NodeId>& copied) {
  const std::set<NodeId> is_copied(copied.begin(), copied.end());
  const Graph planned = copy_to_consumers(graph, copied);
  const auto recorded_id = [](const Node& node) {
    return node.copy_of == -1 ? node.id : node.copy_of;
  };
  Uses uses;
  for (auto node = planned.nodes.begin(); node != planned.nodes.end(); ++node) {
    const auto consumer = std::find_if(node, planned.nodes.end(), [&](const Node& one) {
      return !is_copied.contains(recorded_id(one));
    });
    for (const ValueId id : input_values(*node)) {
      const Value& value = planned.values[id];
      if (!value.requires_grad) continue;
      if (value.source == ValueSource::kNode) {
        const auto positions = node_positions(planned);
        const Node& maker = planned.nodes[positions.at(value.producer)];
        if (is_copied.contains(recorded_id(maker))) continue;
      }
      uses[id].emplace_back(recorded_id(*node), consumer->id);
    }
  }
  return uses;
}

/// Gradients of a value are added up in the order of its uses, and copies of its users are uses by their consumers' order.
TEST(NodeOrder, CopiesKeepTheOrderOfUsesOrItIsRefused) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_kept = 0, num_refused = 0;
  for (int round = 0; round < 500; ++round) {
    const Graph graph = random_sums(random);
    std::vector<NodeId> copied;
    for (int n = 0; n < 8; ++n) {
      if (random() % 3 == 0) copied.push_back(graph.nodes[n].id);
    }
    Uses recorded;
    try {
      recorded = uses_with_copies(graph, copied);
    } catch (const Error&) {
      continue;  // Nothing consumes one of them.
    }
    const auto order = testing::random_order(random, graph, copied);
    ASSERT_EQ(uses_with_copies(reordered(graph, order, copied), copied), recorded);
    const auto any = testing::random_order(random, graph);
    const bool is_kept = why_not_in_order(graph, any, copied).empty();
    ASSERT_EQ(uses_with_copies(reordered(graph, any), copied) == recorded, is_kept);
    num_kept += order != node_ids(graph) ? 1 : 0;
    num_refused += is_kept ? 0 : 1;
  }
  EXPECT_GT(num_kept, 10);
  EXPECT_GT(num_refused, 10);
}

}  // namespace
}  // namespace trireme::graph
