#include "trireme/plan/sharding/sharding_show.h"

#include <gtest/gtest.h>

#include "tests/plan/sharding/convolutions.h"
#include "tests/plan/sharding/layers.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::sharding {
namespace {

TEST(ShardingShow, PartsAndParameters) {
  const graph::Graph graph = test::feed_forward();
  const Sharding sharding = find_sharding(graph, {.num_shards = 2,
                                                  .microbatch = 1024,
                                                  .flops_per_second = 1e9,
                                                  .link_bytes_per_second = 1e9,
                                                  .link_seconds = 1e-5});
  EXPECT_EQ(show(sharding, graph),
            "2 shards, 1.487 ms of a microbatch saved on each\n"
            "  part  sums forward  backward  Mflop    summed     saves\n"
            "  down             1         1    3.1  64.0 KiB  1.487 ms\n"
            "\n"
            "  split parameter  shape    dimension  blocks\n"
            "  w1               [8, 32]          1       1\n"
            "  w2               [32, 8]          0       1\n"
            "\n"
            "parameters: 1.0 KiB in each shard of 2.0 KiB\n");
}

TEST(ShardingShow, TilesAndForecast) {
  const graph::Graph graph = test::images();
  const ShardingOptions options{.num_shards = 2,
                                .microbatch = 16,
                                .flops_per_second = 1e6,
                                .link_bytes_per_second = 1e9,
                                .link_seconds = 1e-5};
  const Sharding sharding = find_tiles(graph, options);
  EXPECT_EQ(
      show(sharding),
      "2 shards of rows, 110.510 ms of a microbatch saved on each\n"
      "  part  values  halos  sums forward  backward  Mflop  taken of others  summed       saves\n"
      "  w0         4      2             1         3    0.2          2.0 KiB   436 B  110.510 "
      "ms\n");
  const ShardForecast found{.whole_seconds = 0.01,
                            .compute_seconds = 0.005,
                            .sum_seconds = 0.0004,
                            .halo_seconds = 0.0006,
                            .num_sums = 4,
                            .num_halos = 2};
  EXPECT_EQ(show(found, 2),
            "whole model      10.000 ms of a microbatch, forward and backward\n"
            "each of 2   shards 6.000 ms: computing 5.000, 4 sums 0.400, 2 halos 0.600\n");
}

TEST(ShardingShow, NothingThatIsSplit) {
  EXPECT_EQ(show(find_sharding(test::feed_forward(), {.num_shards = 3})),
            "3 shards: nothing is split\n");
}

}  // namespace
}  // namespace trireme::sharding
