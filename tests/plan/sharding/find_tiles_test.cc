#include "trireme/plan/sharding/find_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/sharding/convolutions.h"
#include "trireme/error.h"

namespace trireme::sharding {
namespace {

using test::GraphBuilder;
using test::images;
using test::ValueId;

ShardingOptions free_messages(int num_shards) {
  return {.num_shards = num_shards, .microbatch = 4, .flops_per_second = 1, .link_seconds = 0};
}

TEST(FindTiles, SplitsConvolutionsAndWhatIsBetweenThem) {
  const graph::Graph graph = images();
  const Sharding sharding = find_tiles(graph, free_messages(2));
  EXPECT_EQ(sharding.kind, SplitKind::kTiles);
  EXPECT_EQ(sharding.splits, (Splits{{2, {2, 1}}, {3, {2, 1}}, {5, {2, 1}}, {7, {2, 1}}}));
  ASSERT_EQ(sharding.parts.size(), 1U);
  const ShardedPart& part = sharding.parts.front();
  EXPECT_EQ(part.halos, (std::vector<graph::NodeId>{2, 3})) << "the image is whole";
  EXPECT_EQ(part.sums, (std::vector<graph::NodeId>{4})) << "the mean";
  EXPECT_EQ(part.taken, (std::vector<ValueId>{1, 4, 6})) << "weights";
  // Outputs times 2 x 2 x 3 x 3 weights.
  EXPECT_EQ(part.flops, 3 * 2 * (4.0 * (2 * 8 * 4 + 2 * 4 * 4 + 2 * 4 * 4) * 2 * 9));
  // One row of 2 x 4 floats for each convolution, forward and backward.
  EXPECT_EQ(part.halo_bytes, 2 * 2 * (4 * 2 * 4 * 4));
}

// Four shards have a row each of the lower level, which costs two messages and saves little.
TEST(FindTiles, LeavesLevelsOfFewRows) {
  const graph::Graph graph = images();
  ShardingOptions options = free_messages(4);
  EXPECT_EQ(find_tiles(graph, options).splits.size(), 4U);
  options.flops_per_second = 1e6;
  options.link_seconds = 0.005;
  const Sharding sharding = find_tiles(graph, options);
  EXPECT_EQ(sharding.splits, (Splits{{2, {2, 1}}, {3, {2, 1}}}));
  EXPECT_TRUE(sharding.parts.front().halos.empty());
  EXPECT_EQ(sharding.parts.front().sums, (std::vector<graph::NodeId>{2})) << "put together";
  options.link_seconds = 1;
  EXPECT_TRUE(find_tiles(graph, options).parts.empty());
}

TEST(FindTiles, NeedsARowForEachShard) {
  EXPECT_EQ(find_tiles(images(), free_messages(8)).splits.size(), 2U);
  EXPECT_TRUE(find_tiles(images(), free_messages(9)).splits.empty());
  EXPECT_TRUE(find_tiles(images(), free_messages(1)).splits.empty());
}

// A view of what a node writes later: a copy put together would not see it.
TEST(FindTiles, LeavesMemoryThatWholeNodesShare) {
  GraphBuilder b;
  ValueId x = b.input("x", {2, 8, 4});
  x = test::convolution(b, x, 8);
  const ValueId flat = b.node("view", {x}, b.batch({64}), {.view_of = x});
  b.write("relu_", {x});
  b.loss(flat);
  EXPECT_TRUE(find_tiles(b.graph(), free_messages(2)).splits.empty());
}

TEST(FindTiles, RefusesWhatCannotBe) {
  EXPECT_THROW(find_tiles(images(), {.num_shards = 0}), Error);
  graph::Graph graph = images();
  graph.shorter = {images()};
  EXPECT_THROW(find_tiles(graph, free_messages(2)), Error);
}

}  // namespace
}  // namespace trireme::sharding
