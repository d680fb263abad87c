#include "trireme/plan/partition/idle_ranks.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"

namespace trireme::partition {
namespace {

std::string text_of(int num_ranks, PartitionOptions options) {
  const auto model =
      layout::testing::make_chain(std::vector<layout::testing::ChainNode>(4, {10, 10, 10, 1, 1}));
  const topology::Topology topology = layout::testing::make_topology(num_ranks);
  options.may_idle = true;
  const layout::Plan plan = partition_over_replicas(model.graph, model.profile, topology, options);
  return idle_ranks(plan, topology, options);
}

TEST(IdleRanks, AreSaidWithTheLanesThatWouldUseThem) {
  EXPECT_EQ(text_of(4, {.batch = {8, 1, 2}, .replicas = 0, .stages = 2}), "");
  EXPECT_EQ(text_of(2, {.batch = {8, 1, 1}, .replicas = 0, .stages = 2}), "");
  EXPECT_EQ(text_of(4, {.batch = {8, 1, 1}, .replicas = 0, .stages = 2}),
            "the plan uses 2 of the 4 ranks, the others stay idle; start it with as many. In 2 "
            "replicas its stages would use 4: ask for --lanes 2, which gives other bits than "
            "--lanes 1");
}

TEST(IdleRanks, AreJustSaidWhereOneReplicaWasAskedFor) {
  EXPECT_EQ(text_of(4, {.batch = {8, 1, 1}, .replicas = 1, .stages = 2}),
            "the plan uses 2 of the 4 ranks, the others stay idle; start it with as many");
  EXPECT_EQ(text_of(3, {.batch = {8, 1, 1}, .replicas = 0, .stages = 2}),
            "the plan uses 2 of the 3 ranks, the others stay idle; start it with as many");
}

}  // namespace
}  // namespace trireme::partition
