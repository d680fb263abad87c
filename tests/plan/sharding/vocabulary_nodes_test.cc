#include "trireme/plan/sharding/vocabulary_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/sharding/layers.h"
#include "trireme/plan/sharding/sharded_graph.h"

namespace trireme::sharding {
namespace {

using graph::Argument;
using graph::ValueRef;
using test::ArgumentList;
using test::GraphBuilder;
using test::Size;
using test::ValueId;

/// What lookups and losses differ in.
struct WordOptions {
  std::int64_t padding = -1;
  bool scales_by_count = false;
  double smoothing = 0;
};

/// 12 words: table [12, 4], lookup, product with the table, loss of [B] classes.
graph::Graph words(const WordOptions& options = {}) {
  GraphBuilder b;
  const ValueId ids = b.input("ids", {}), table = b.parameter("table", {12, 4});
  b.graph().values[ids].dtype = Dtype::kI64;
  const ArgumentList rest = {{Size{0, options.padding}}, {options.scales_by_count}, {false}};
  ValueId x = b.node("embedding", {table, ids}, b.batch({4}), {.constants = rest});
  x = b.node("linear", {x, table}, b.batch({12}), {.constants = {Argument{}}});
  const ArgumentList of_loss = {
      {}, {Size{0, 1}}, {Size{0, -100}}, {graph::Real{0, options.smoothing}}};
  const ValueId loss = b.node("cross_entropy_loss", {x, ids}, b.fixed({}), {.constants = of_loss});
  b.graph().losses.push_back({"loss", loss, {}, 1});
  return b.graph();
}

Sharding vocabulary_sharding(const graph::Graph& graph, int num_shards) {
  return find_sharding(graph, {.num_shards = num_shards, .flops_per_second = 1, .link_seconds = 0});
}

std::vector<std::string> operators(const graph::Graph& graph) {
  std::vector<std::string> all;
  for (const graph::Node& node : graph.nodes) {
    all.push_back(node.op == "opaque" ? node.overload : node.op);
  }
  return all;
}

TEST(Vocabularies, AreRowsOfTheTableAndClassesOfTheLoss) {
  const graph::Graph graph = words({.padding = 7});
  const Sharding sharding = vocabulary_sharding(graph, 3);
  EXPECT_EQ(sharding.splits, (Splits{{1, {0, 1}}, {3, {1, 1}}}));
  const ShardedGraph second = sharded_graph(graph, sharding, {1, 1});
  EXPECT_THAT(
      operators(second.graph),
      testing::ElementsAre(
          "aten::sub", "aten::lt", "aten::ge", "aten::logical_or", "aten::masked_fill",
          "aten::embedding", "aten::unsqueeze", "aten::masked_fill", "sum over shards",
          "given to shards", "aten::linear", "aten::eq", "aten::amax", "maximum over shards",
          "aten::sub", "aten::exp", "aten::sum", "aten::sub", "aten::lt", "aten::ge",
          "aten::logical_or", "aten::logical_or", "aten::masked_fill", "aten::unsqueeze",
          "aten::gather", "aten::squeeze", "aten::masked_fill", "aten::stack", "sum over shards",
          "aten::select", "aten::select", "aten::log", "aten::sub", "aten::masked_fill",
          "aten::sum", "aten::logical_not", "aten::sum", "aten::div"));
  const graph::Node& lookup = second.graph.nodes[5];
  EXPECT_EQ(std::get<Size>(second.graph.nodes[0].inputs[1].content), (Size{0, 4})) << "rows 4 to 7";
  EXPECT_EQ(std::get<Size>(lookup.inputs[2].content), (Size{0, 3})) << "row 7";
  EXPECT_EQ(second.graph.values[1].shape, GraphBuilder::fixed({4, 4}));
  EXPECT_EQ(std::get<Size>(second.graph.nodes[17].inputs[1].content), (Size{0, 4}));
}

TEST(Vocabularies, PaddingOfAnotherShardIsNone) {
  const graph::Graph graph = words({.padding = 7});
  const ShardedGraph first = sharded_graph(graph, vocabulary_sharding(graph, 3), {0, 1});
  EXPECT_EQ(std::get<Size>(first.graph.nodes[3].inputs[2].content), (Size{0, -1}));
}

// Counts of entries and the mean of all logits would have to be summed too: then the table is split by its columns.
TEST(Vocabularies, StayWholeWhereMoreWouldHaveToBeSummed) {
  const auto table_of = [](const WordOptions& options) {
    return vocabulary_sharding(words(options), 2).splits.at(1);
  };
  EXPECT_EQ(table_of({}), (TensorSplit{0, 1}));
  EXPECT_EQ(table_of({.scales_by_count = true}), (TensorSplit{1, 1}));
  EXPECT_EQ(table_of({.smoothing = 0.1}), (TensorSplit{1, 1}));
  EXPECT_TRUE(vocabulary_sharding(words(), 5).splits.empty()) << "12 words";
}

// Two sums of rows, one of a row's maximum, and what comes back to the head.
TEST(Vocabularies, CountWhatTheySum) {
  const graph::Graph graph = words();
  const Sharding sharding = find_sharding(
      graph, {.num_shards = 2, .microbatch = 3, .flops_per_second = 1, .link_seconds = 0});
  ASSERT_EQ(sharding.parts.size(), 1U);
  EXPECT_EQ(sharding.parts.front().sum_bytes, 3 * (4 + 4) * 4 + 3 * 3 * 4);
  EXPECT_EQ(sharding.parts.front().flops, 3 * 2 * (3.0 * 4 * 12));
}

}  // namespace
}  // namespace trireme::sharding
