#include "trireme/wire/collectives/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::collectives {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Waiter and group had the same deadline; where the waiter was first, nobody was named.
TEST(World, ARankThatDoesNotGatherIsNamed) {
  for (int round = 0; round < 20; ++round) {
    const auto endpoints = transport::make_sim_world(3);
    const World world{*endpoints[0], {.deadline = 20ms, .logger = Logger(LogLevel::kOff)}};
    try {
      gather(world, "text", "plan");
      ADD_FAILURE() << "the others are not there";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
      EXPECT_THAT(error.message(), HasSubstr("waited 20 ms for ranks 1, 2;"));
      EXPECT_EQ(error.context().group, "gather");
      EXPECT_EQ(error.context().peer, 1);
    }
    EXPECT_FALSE(endpoints[1]->failure());  // the group's alone; whoever drives the rank ends all
  }
}

// A work that waits behind another of its group fails with that.
TEST(World, AnOperationBehindAnotherNamesWhoIsMissingToo) {
  const auto endpoints = transport::make_sim_world(2);
  const World world{*endpoints[0], {.deadline = 100ms, .logger = Logger(LogLevel::kOff)}};
  const auto group = make_world_group(world, "sums");
  const transport::WorkPtr first = group->barrier();
  const transport::WorkPtr second = group->barrier();
  EXPECT_FALSE(first->wait_for(10ms));
  try {
    transport::await(group_work(*second, *group), world.watch,
                     {.rank = 0, .operation = "join bucket", .step = 3});
    ADD_FAILURE() << "rank 1 is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("waited 100 ms for rank 1"));
    EXPECT_EQ(error.context().step, 3);
    EXPECT_EQ(error.context().peer, 1);
  }
  EXPECT_TRUE(first->is_done());
  EXPECT_TRUE(second->is_done());
}

}  // namespace
}  // namespace trireme::collectives
