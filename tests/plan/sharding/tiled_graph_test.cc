#include "trireme/plan/sharding/tiled_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/sharding/convolutions.h"
#include "trireme/error.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::sharding {
namespace {

using test::images;
using test::Size;

Sharding tiles_of(const graph::Graph& graph, int num_shards) {
  return find_tiles(graph, {.num_shards = num_shards, .flops_per_second = 1, .link_seconds = 0});
}

std::vector<std::string> calls_of(const graph::Graph& graph) {
  std::vector<std::string> calls;
  for (const graph::Node& node : graph.nodes) {
    calls.push_back(node.op == "opaque" ? node.overload : node.op);
  }
  return calls;
}

std::int64_t rows_of(const graph::Graph& graph, const graph::Node& node) {
  return graph.values[node.outputs.front()].shape[2].fixed;
}

// The first of two shards: rows beyond the upper edge are padding, one row below comes from the image, then from the other shard, to
// which it gives one for the convolution of stride 2.
TEST(TiledGraph, TheFirstShard) {
  const graph::Graph graph = images();
  const ShardedGraph first = sharded_graph(graph, tiles_of(graph, 2), {0, 1});
  EXPECT_THAT(calls_of(first.graph),
              testing::ElementsAre("given to shards", "aten::slice", "aten::constant_pad_nd",
                                   "aten::conv2d", "aten::relu", "given to shards",
                                   "halo of shards 0", "aten::constant_pad_nd", "aten::conv2d",
                                   "given to shards", "halo of shards 1", "aten::constant_pad_nd",
                                   "aten::conv2d", "aten::sum", "sum over shards", "aten::div"));
}

TEST(TiledGraph, Halos) {
  const graph::Graph graph = images();
  const ShardedGraph second = sharded_graph(graph, tiles_of(graph, 2), {1, 1});
  ASSERT_EQ(second.halos.size(), 2U);
  EXPECT_EQ(second.halos[0], (HaloExchange{"halo of shards 0", 2, 8, {{0, 4}, {3, 8}}}));
  EXPECT_EQ(second.halos[1], (HaloExchange{"halo of shards 1", 2, 4, {{0, 3}, {1, 4}}}));
  for (const graph::Node& node : second.graph.nodes) {
    if (node.op != "aten::conv2d") continue;
    const auto& padding = std::get<test::ArgumentList>(node.inputs[4].content);
    EXPECT_EQ(std::get<Size>(padding[0].content), (Size{0, 0}));
    EXPECT_EQ(std::get<Size>(padding[1].content), (Size{0, 1}));
  }
}

TEST(TiledGraph, UnevenTiles) {
  const graph::Graph graph = images();
  const ShardedGraph all = sharded_graph(graph, tiles_of(graph, 3), {0, 3});
  std::vector<std::int64_t> rows;
  for (const graph::Node& node : all.graph.nodes) {
    if (node.op == "aten::conv2d") rows.push_back(rows_of(all.graph, node));
  }
  EXPECT_THAT(rows, testing::ElementsAre(2, 3, 3, 1, 1, 2, 1, 1, 2));
}

// Of eight shards the levels below have no row each: tiles are put together for them.
TEST(TiledGraph, WholeNodesTakeTilesPutTogether) {
  const graph::Graph graph = images();
  const ShardedGraph third = sharded_graph(graph, tiles_of(graph, 8), {2, 1});
  EXPECT_THAT(calls_of(third.graph),
              testing::ElementsAre("given to shards", "aten::slice", "aten::conv2d", "aten::relu",
                                   "aten::constant_pad_nd", "sum over shards", "aten::conv2d",
                                   "aten::conv2d", "aten::mean"));
  EXPECT_TRUE(third.halos.empty());
}

// Each shard sums the losses of its pixels; how many count is known to all.
TEST(TiledGraph, LossesOfPixels) {
  test::GraphBuilder b;
  const test::ValueId x = b.input("x", {2, 8, 4}), classes = b.input("classes", {8, 4});
  b.graph().values[classes].dtype = Dtype::kI64;
  const test::ValueId logits = test::convolution(b, x, 8);
  const test::ArgumentList rest = {{}, {Size{0, 1}}, {Size{0, -100}}, {graph::Real{0, 0}}};
  const test::ValueId loss =
      b.node("cross_entropy_loss", {logits, classes}, b.fixed({}), {.constants = rest});
  b.graph().losses.push_back({"loss", loss, {}, 1});
  const graph::Graph graph = b.graph();
  const Sharding sharding = tiles_of(graph, 2);
  EXPECT_EQ(sharding.splits, (Splits{{logits, {2, 1}}}));
  const ShardedGraph second = sharded_graph(graph, sharding, {1, 1});
  EXPECT_THAT(calls_of(second.graph),
              testing::ElementsAre("given to shards", "aten::slice", "aten::constant_pad_nd",
                                   "aten::conv2d", "aten::slice", "aten::cross_entropy_loss",
                                   "sum over shards", "aten::ne", "aten::sum", "aten::div"));
  EXPECT_EQ(std::get<Size>(second.graph.nodes[5].inputs[3].content), (Size{0, 2})) << "a sum";
  EXPECT_EQ(std::get<Size>(second.graph.nodes[4].inputs[2].content), (Size{0, 4})) << "its rows";
}

TEST(TiledGraph, RefusesOtherSplits) {
  const graph::Graph graph = images();
  Sharding sharding = tiles_of(graph, 2);
  sharding.splits.erase(3);  // what the second convolution takes
  EXPECT_NO_THROW(sharded_graph(graph, sharding, {0, 1})) << "it takes its rows of the whole";
  sharding.splits[3] = {3, 1};
  EXPECT_THROW(sharded_graph(graph, sharding, {0, 1}), Error) << "columns";
  sharding.splits[3] = {2, 2};
  EXPECT_THROW(sharded_graph(graph, sharding, {0, 1}), Error) << "blocks";
}

}  // namespace
}  // namespace trireme::sharding
