#include "trireme/plan/sharding/tile_rules.h"

#include <gtest/gtest.h>

#include "tests/plan/sharding/convolutions.h"

namespace trireme::sharding {
namespace {

using test::GraphBuilder;
using test::ValueId;

// Groups of samples, and what torch works out in another type than f32, are not what add_tiled_norm writes.
TEST(TileRules, NormsOfOtherStatisticsStayWhole) {
  GraphBuilder b;
  const ValueId x = test::convolution(b, b.input("x", {2, 8, 4}), 8);
  const ValueId scale = b.parameter("scale", {2}), shift = b.parameter("shift", {2});
  b.loss(
      b.node("batch_norm", {x, scale, shift}, b.batch({2, 8, 4}), {.constants = {{}, {}, {true}}}));
  graph::Graph graph = b.graph();
  graph::Node& norm = *std::ranges::find(graph.nodes, "aten::batch_norm", &graph::Node::op);
  const auto has_rule = [&] { return tile_rule(graph, norm, {{x, {2, 1}}}, 2).has_value(); };
  EXPECT_TRUE(has_rule());
  norm.op = "trireme::batch_norm";
  EXPECT_TRUE(has_rule());
  norm.overload = "grouped";
  EXPECT_FALSE(has_rule());
  norm.overload.clear();
  graph.values[scale].dtype = Dtype::kBf16;
  EXPECT_FALSE(has_rule());
  graph.values[scale].dtype = Dtype::kF32;
  graph.values[x].dtype = Dtype::kF64;
  EXPECT_FALSE(has_rule());
}

// The padding of a pool has no value among integers.
TEST(TileRules, WindowsAreOfNumbersWithAFraction) {
  GraphBuilder b;
  const ValueId image = b.input("x", {2, 8, 4});
  b.loss(test::convolution(b, image, 8));
  graph::Graph graph = b.graph();
  const graph::Node& node = *std::ranges::find(graph.nodes, "aten::conv2d", &graph::Node::op);
  EXPECT_TRUE(tile_rule(graph, node, {}, 2).has_value());
  graph.values[image].dtype = Dtype::kI64;
  EXPECT_FALSE(tile_rule(graph, node, {}, 2).has_value());
}

}  // namespace
}  // namespace trireme::sharding
