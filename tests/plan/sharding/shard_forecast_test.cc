#include "trireme/plan/sharding/shard_forecast.h"

#include <gtest/gtest.h>

#include "tests/plan/sharding/convolutions.h"
#include "tests/plan/sharding/layers.h"
#include "trireme/error.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::sharding {
namespace {

constexpr double kSecond = 1.0;

ShardingOptions all_that_can_be(int num_shards) {
  return {.num_shards = num_shards, .microbatch = 4, .flops_per_second = 1, .link_seconds = 0};
}

/// A second for each node; a byte of a message takes 1/1000 of one, its start `start`.
ShardCosts plain_costs(const graph::Graph& graph, double start) {
  return {.microbatch = 4,
          .node_seconds = std::vector<double>(graph.nodes.size(), kSecond),
          .message_seconds = [start](std::int64_t bytes) {
            return start + static_cast<double>(bytes) / 1000;
          }};
}

// add, product, ReLU, product, mean: three of five on half of the channels; a sum forward and one backward of [4, 8] floats.
TEST(ShardForecast, DividesWhatIsSplitAndAddsSums) {
  const graph::Graph graph = test::feed_forward();
  const Sharding sharding = find_sharding(graph, all_that_can_be(2));
  const ShardForecast found = forecast(graph, sharding, plain_costs(graph, 0.01));
  EXPECT_DOUBLE_EQ(found.whole_seconds, 5 * kSecond);
  EXPECT_DOUBLE_EQ(found.compute_seconds, 2 * kSecond + 3 * kSecond / 2);
  EXPECT_EQ(found.num_sums, 2);
  EXPECT_EQ(found.num_halos, 0);
  // One exchange of all of it takes a start less than a ring of two.
  EXPECT_DOUBLE_EQ(found.sum_seconds, 2 * (0.01 + 4 * 8 * 4 / 1000.0));
}

TEST(ShardForecast, SumsOfManyGoRoundARing) {
  const graph::Graph graph = test::feed_forward();
  const Sharding sharding = find_sharding(graph, all_that_can_be(8));
  const ShardForecast found = forecast(graph, sharding, plain_costs(graph, 0));
  EXPECT_NEAR(found.sum_seconds, 2 * (2 * 7 * (128.0 / 8) / 1000), 1e-12);
}

// Three convolutions, a ReLU and a mean on tiles of three shards: the largest has 3 of 8 rows, 2 of 4.
TEST(ShardForecast, TilesTakeTheLargestShare) {
  const graph::Graph graph = test::images();
  const Sharding sharding = find_tiles(graph, all_that_can_be(3));
  const ShardForecast found = forecast(graph, sharding, plain_costs(graph, 0.01));
  EXPECT_DOUBLE_EQ(found.compute_seconds, 3.0 / 8 + 3.0 / 8 + 2.0 / 4 + 2.0 / 4 + 2.0 / 4);
  EXPECT_EQ(found.num_halos, 2);
  EXPECT_EQ(found.num_sums, 4) << "the mean, and gradients of three weights";
}

TEST(ShardForecast, WholeNodesTakeAllOfTheirTime) {
  const graph::Graph graph = test::images();
  const Sharding sharding = find_tiles(graph, all_that_can_be(8));
  const ShardForecast found = forecast(graph, sharding, plain_costs(graph, 0.01));
  EXPECT_DOUBLE_EQ(found.compute_seconds, 2.0 / 8 + 3);
  EXPECT_EQ(found.num_halos, 0);
}

TEST(ShardForecast, ProductsAlone) {
  const graph::Graph graph = test::feed_forward();
  const std::vector<double> seconds =
      product_seconds(graph, {.microbatch = 4, .flops_per_second = 1000});
  EXPECT_DOUBLE_EQ(seconds[1], 3 * 2 * (4.0 * 8 * 32) / 1000);
  EXPECT_DOUBLE_EQ(seconds[2], 0);
}

TEST(ShardForecast, TakesATimeForEachNode) {
  const graph::Graph graph = test::feed_forward();
  ShardCosts costs = plain_costs(graph, 0);
  costs.node_seconds.pop_back();
  EXPECT_THROW(forecast(graph, find_sharding(graph, all_that_can_be(2)), costs), Error);
}

}  // namespace
}  // namespace trireme::sharding
