#include "trireme/plan/sharding/sharding_show.h"

#include <gtest/gtest.h>

#include "tests/plan/sharding/layers.h"

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

TEST(ShardingShow, NothingThatIsSplit) {
  EXPECT_EQ(show(find_sharding(test::feed_forward(), {.num_shards = 3})),
            "3 shards: nothing is split\n");
}

}  // namespace
}  // namespace trireme::sharding
