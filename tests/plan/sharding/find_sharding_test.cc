#include "trireme/plan/sharding/find_sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/sharding/layers.h"
#include "trireme/error.h"

namespace trireme::sharding {
namespace {

using test::feed_forward;
using test::GraphBuilder;
using test::ValueId;

ShardingOptions free_sums(int num_shards) {
  return {.num_shards = num_shards, .microbatch = 4, .flops_per_second = 1, .link_seconds = 0};
}

TEST(FindSharding, SplitsALayerByOutputsThenByInputs) {
  const graph::Graph graph = feed_forward();
  const Sharding sharding = find_sharding(graph, free_sums(2));
  EXPECT_EQ(sharding.splits, (Splits{{2, {1, 1}}, {3, {0, 1}}, {5, {1, 1}}, {6, {1, 1}}}));
  ASSERT_EQ(sharding.parts.size(), 1U);
  const ShardedPart& part = sharding.parts.front();
  EXPECT_EQ(part.name, "down");
  EXPECT_EQ(part.sums, (std::vector<graph::NodeId>{3}));
  EXPECT_EQ(part.taken, (std::vector<ValueId>{4}));
  EXPECT_EQ(part.flops, 3 * 2 * (2.0 * 4 * 8 * 32));
  EXPECT_EQ(part.sum_bytes, 2 * 4 * 8 * 4);
}

TEST(FindSharding, WeighsSumsAgainstProducts) {
  const graph::Graph graph = feed_forward();
  ShardingOptions options = free_sums(2);
  EXPECT_EQ(find_sharding(graph, options).parts.size(), 1U);
  options.link_seconds = 1e9;
  EXPECT_TRUE(find_sharding(graph, options).splits.empty()) << "two sums take longer";
  options.link_seconds = 0;
  options.link_bytes_per_second = 1e-9;
  EXPECT_TRUE(find_sharding(graph, options).parts.empty());
}

TEST(FindSharding, LeavesWhatDoesNotDivide) {
  const graph::Graph graph = feed_forward();
  EXPECT_TRUE(find_sharding(graph, free_sums(3)).splits.empty());
  EXPECT_TRUE(find_sharding(graph, free_sums(1)).splits.empty());
  EXPECT_EQ(find_sharding(graph, free_sums(32)).parts.size(), 1U);
}

TEST(FindSharding, LeavesWhatMeetsWithinALayer) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId scale = b.parameter("scale", {32});
  ValueId y = b.node("mm", {x, w1}, b.batch({32}));
  const test::ArgumentList rest = {{test::ArgumentList{{test::Size{0, 32}}}},
                                   {graph::ValueRef{scale}}};
  y = b.node("rms_norm", {y}, b.batch({32}), {.constants = rest});
  y = b.node("mm", {y, w2}, b.batch({8}));
  b.loss(y);
  EXPECT_TRUE(find_sharding(b.graph(), free_sums(2)).parts.empty());
}

TEST(FindSharding, LeavesWhatALossIsMadeOf) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("w1", {8, 32}), w2 = b.parameter("w2", {32, 8});
  const ValueId inner = b.node("mm", {x, w1}, b.batch({32}));
  b.loss(b.node("mm", {inner, w2}, b.batch({8})));
  EXPECT_EQ(find_sharding(b.graph(), free_sums(2)).parts.size(), 1U);
  b.loss(inner, "other");
  EXPECT_TRUE(find_sharding(b.graph(), free_sums(2)).parts.empty()) << "a mean of what is split";
}

// Of three products in a row the middle one is the end of one part or the beginning of another.
TEST(FindSharding, TakesThePartThatSavesMost) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId w1 = b.parameter("w1", {8, 16}), w2 = b.parameter("w2", {16, 64});
  const ValueId w3 = b.parameter("w3", {64, 8});
  ValueId y = b.node("mm", {x, w1}, b.batch({16}), {.name = "first"});
  y = b.node("mm", {y, w2}, b.batch({64}), {.name = "second"});
  y = b.node("mm", {y, w3}, b.batch({8}), {.name = "third"});
  b.loss(y);
  const Sharding sharding = find_sharding(b.graph(), free_sums(2));
  ASSERT_EQ(sharding.parts.size(), 1U);
  EXPECT_EQ(sharding.parts.front().name, "third");
}

TEST(FindSharding, RefusesWhatCannotBe) {
  EXPECT_THROW(find_sharding(feed_forward(), {.num_shards = 0}), Error);
  EXPECT_THROW(find_sharding(feed_forward(), {.link_bytes_per_second = 0}), Error);
  EXPECT_THROW(find_sharding(feed_forward(), {.link_seconds = -1}), Error);
}

}  // namespace
}  // namespace trireme::sharding
