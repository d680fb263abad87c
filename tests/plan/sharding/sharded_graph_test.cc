#include "trireme/plan/sharding/sharded_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/sharding/layers.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::sharding {
namespace {

using test::ArgumentList;
using test::feed_forward;
using test::GraphBuilder;
using test::Size;
using test::ValueId;

Sharding sharding_of(const graph::Graph& graph, int num_shards) {
  return find_sharding(graph, {.num_shards = num_shards, .flops_per_second = 1, .link_seconds = 0});
}

/// Each node as `name id(inputs)=outputs`.
std::vector<std::string> picture(const graph::Graph& graph) {
  std::vector<std::string> lines;
  const auto joined = [](const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
    return text;
  };
  for (const graph::Node& node : graph.nodes) {
    lines.push_back((node.op == "opaque" ? node.overload : node.op) + " " +
                    std::to_string(node.id) + "(" + joined(graph::input_values(node)) +
                    ")=" + joined(node.outputs));
  }
  return lines;
}

TEST(ShardedGraph, AllShardsOfALayer) {
  const graph::Graph graph = feed_forward();
  const ShardedGraph both = sharded_graph(graph, sharding_of(graph, 2), {0, 2});
  EXPECT_THAT(
      picture(both.graph),
      testing::ElementsAre("aten::add 0(0,1)=4", "given to shards 5(4)=11,12", "aten::mm 1(11,2)=5",
                           "aten::mm 6(12,9)=13", "aten::relu 2(5)=6", "aten::relu 7(13)=14",
                           "aten::mm 3(6,3)=15", "aten::mm 8(14,10)=16",
                           "sum over shards 9(15,16)=7", "aten::mean 4(7)=8"));
  ASSERT_EQ(both.parts.size(), 4U);
  EXPECT_EQ(both.parts[1].name, "w1[1/2]");
  EXPECT_EQ(both.graph.values[both.parts[1].value].shape, GraphBuilder::fixed({8, 16}));
  EXPECT_EQ(both.graph.values[both.parts[3].value].shape, GraphBuilder::fixed({16, 8}));
  EXPECT_EQ(both.graph.parameters.size(), 5U);
}

TEST(ShardedGraph, OneShardOfALayer) {
  const graph::Graph graph = feed_forward();
  const ShardedGraph one = sharded_graph(graph, sharding_of(graph, 4), {2, 1});
  EXPECT_THAT(picture(one.graph),
              testing::ElementsAre("aten::add 0(0,1)=4", "given to shards 5(4)=9",
                                   "aten::mm 1(9,2)=5", "aten::relu 2(5)=6", "aten::mm 3(6,3)=10",
                                   "sum over shards 6(10)=7", "aten::mean 4(7)=8"));
  EXPECT_EQ(one.parts[0].name, "w1[2/4]");
  EXPECT_EQ(one.parts[0].parameter, 1);
  EXPECT_EQ(one.graph.values[5].shape, GraphBuilder::batch({8}));
}

// Those of the second shard here were worked out from values that the whole graph does not have.
TEST(ShardedGraph, EachShardHasSizesOfItsOwn) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("w1", {8, 24}), w2 = b.parameter("w2", {24, 8});
  ValueId y = b.node("mm", {x, w1}, b.batch({24}));
  y = b.node("unflatten", {y}, b.batch({4, 6}),
             {.constants = {{Size{0, -1}}, {ArgumentList{{Size{0, 4}}, {Size{0, 6}}}}}});
  y = b.node("flatten", {y}, b.batch({24}), {.constants = {{Size{0, 1}}, {Size{0, -1}}}});
  b.loss(b.node("mm", {y, w2}, b.batch({8})));
  const graph::Graph graph = b.graph();
  const ShardedGraph all = sharded_graph(graph, sharding_of(graph, 4), {0, 4});
  int num_unflattened = 0;
  for (const graph::Node& node : all.graph.nodes) {
    if (node.op != "aten::unflatten") continue;
    ++num_unflattened;
    const auto& sizes = std::get<ArgumentList>(node.inputs[2].content);
    EXPECT_EQ(std::get<Size>(sizes[0].content), (Size{0, 1}));
    EXPECT_EQ(std::get<Size>(sizes[1].content), (Size{0, 6}));
  }
  EXPECT_EQ(num_unflattened, 4);
}

TEST(ShardedGraph, WithoutSplitsIsTheGraph) {
  const graph::Graph graph = feed_forward();
  EXPECT_EQ(
      sharded_graph(
          graph,
          {.graph_sha256 = graph::graph_sha256(graph), .num_shards = 2, .splits = {}, .parts = {}},
          {1, 1})
          .graph,
      graph);
}

/// x -> addmm -> dropout -> addmm.
graph::Graph with_dropout() {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId b1 = b.parameter("b1", {32}), b2 = b.parameter("b2", {8});
  const ArgumentList ones = {{Size{0, 1}}, {Size{0, 1}}};
  ValueId y = b.node("addmm", {b1, x, w1}, b.batch({32}), {.constants = ones});
  y = b.node("dropout", {y}, b.batch({32}),
             {.constants = {{graph::Real{0, 0.5}}, {true}}, .flags = {.random = true}});
  b.loss(b.node("addmm", {b2, y, w2}, b.batch({8}), {.constants = ones}));
  return b.graph();
}

TEST(ShardedGraph, MaskIsDrawnOnceAndBiasesOfSumsAreAddedOnce) {
  const graph::Graph graph = with_dropout();
  const ShardedGraph one = sharded_graph(graph, sharding_of(graph, 2), {1, 1});
  std::vector<std::string> operators;
  for (const graph::Node& node : one.graph.nodes) operators.push_back(node.op);
  EXPECT_THAT(operators,
              testing::ElementsAre("aten::addmm", "aten::ones", "aten::dropout", "aten::slice",
                                   "aten::mul", "aten::mm", "opaque", "aten::add", "aten::mean"));
  const graph::Node& drawn = one.graph.nodes[2];
  EXPECT_EQ(drawn.id, 1) << "the stream of the whole node";
  EXPECT_TRUE(drawn.flags.random);
  EXPECT_FALSE(drawn.flags.grad_mode);
  EXPECT_EQ(one.graph.values[drawn.outputs.front()].shape, GraphBuilder::batch({32}));
  EXPECT_EQ(std::get<Size>(one.graph.nodes[3].inputs[2].content), (Size{0, 16}));
  EXPECT_EQ(one.graph.parameters[2].name, "b1[1/2]");
  EXPECT_EQ(one.graph.parameters[3].name, "b2");
}

// What needs no gradient is sliced; what a node writes in between is given anew.
TEST(ShardedGraph, ShardsTakePartsOfMasksAndNewValuesAfterWrites) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8}), mask = b.input("mask", {32});
  const ValueId start = b.parameter("start", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId w3 = b.parameter("w3", {8, 32}), w4 = b.parameter("w4", {32, 8});
  const ValueId h = b.node("add", {x, start}, b.batch({8}));
  ValueId y = b.node("mm", {h, w1}, b.batch({32}));
  y = b.node("mul", {y, mask}, b.batch({32}));
  const ValueId first = b.node("mm", {y, w2}, b.batch({8}));
  b.write("relu_", {h});
  y = b.node("mm", {h, w3}, b.batch({32}));
  y = b.node("mm", {y, w4}, b.batch({8}));
  b.loss(b.node("add", {first, y}, b.batch({8})));
  const graph::Graph graph = b.graph();
  const ShardedGraph second = sharded_graph(graph, sharding_of(graph, 4), {1, 1});
  std::vector<std::string> operators;
  for (const graph::Node& node : second.graph.nodes) {
    operators.push_back(node.op == "opaque" ? node.overload : node.op);
  }
  EXPECT_THAT(operators, testing::ElementsAre(
                             "aten::add", "given to shards", "aten::mm", "aten::slice", "aten::mul",
                             "aten::mm", "sum over shards", "aten::relu_", "given to shards",
                             "aten::mm", "aten::mm", "sum over shards", "aten::add", "aten::mean"));
  EXPECT_EQ(std::get<Size>(second.graph.nodes[3].inputs[2].content), (Size{0, 8}));
  EXPECT_EQ(std::get<Size>(second.graph.nodes[3].inputs[3].content), (Size{0, 16}));
}

/// The graph of `with_dropout` on [B, words, 8].
graph::Graph of_words(std::int64_t words) {
  GraphBuilder b;
  const ValueId x = b.input("x", {words, 8}), start = b.parameter("start", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId h = b.node("add", {x, start}, b.batch({words, 8}));
  ValueId y = b.node("matmul", {h, w1}, b.batch({words, 32}));
  y = b.node("dropout", {y}, b.batch({words, 32}),
             {.constants = {{graph::Real{0, 0.5}}, {true}}, .flags = {.random = true}});
  b.loss(b.node("matmul", {y, w2}, b.batch({words, 8})));
  b.graph().lengths = {{"words", words}};
  return b.graph();
}

TEST(ShardedGraph, IsOfAllLengths) {
  graph::Graph graph = of_words(6);
  graph.shorter = {of_words(3)};
  graph::check(graph);
  const graph::Graph shard = sharded_graph(graph, sharding_of(graph, 2), {1, 1}).graph;
  ASSERT_EQ(shard.shorter.size(), 1U);
  EXPECT_EQ(picture(shard), picture(shard.shorter.front()));
  const auto shape_of_mask = [](const graph::Graph& one) {
    const auto drawn = std::ranges::find(one.nodes, "aten::dropout", &graph::Node::op);
    return one.values[drawn->outputs.front()].shape;
  };
  EXPECT_EQ(shape_of_mask(shard), GraphBuilder::batch({6, 32}));
  EXPECT_EQ(shape_of_mask(shard.shorter.front()), GraphBuilder::batch({3, 32}));
}

TEST(ShardedGraph, RefusesOtherRangesAndGraphs) {
  const graph::Graph graph = feed_forward();
  const Sharding sharding = sharding_of(graph, 2);
  EXPECT_THROW(sharded_graph(graph, sharding, {1, 2}), Error);
  EXPECT_THROW(sharded_graph(graph, sharding, {-1, 1}), Error);
  EXPECT_THROW(sharded_graph(graph, sharding, {0, 0}), Error);
  EXPECT_THROW(sharded_graph(with_dropout(), sharding, {0, 1}), Error);
  Sharding other = sharding;
  other.splits[99] = {0, 1};
  EXPECT_THROW(sharded_graph(graph, other, {0, 1}), Error);
  other = sharding;
  other.splits.erase(6);
  EXPECT_THROW(sharded_graph(graph, other, {0, 1}), Error) << "a relu of which one side is whole";
}

}  // namespace
}  // namespace trireme::sharding
