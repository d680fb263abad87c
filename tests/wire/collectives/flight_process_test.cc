// The flight record of a process that hangs, read by another one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::collectives::test {
namespace {

using testing::HasSubstr;

TEST(FlightOfProcess, SaysWhatARankHangsIn) {
  transport::test::RankProcesses processes(
      2, [](int rank, const transport::Address& address, const auto& ready) {
        transport::test::TestClient store(address, rank);
        const auto endpoint =
            transport::connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
        Group group(*endpoint, {0, 1}, {.name = "data", .id = 1});
        std::vector<float> data(1000);
        transport::test::wait_for(group.all_reduce(std::span(data)));
        const auto work = rank == 0 ? group.barrier() : nullptr;
        ready();
        transport::test::wait_to_be_killed();
      });
  const transport::test::TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const std::vector<FlightRecord> records = read_flights(processes.process(0));
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records[0].group, "data");
  EXPECT_EQ(records[0].process, processes.process(0));
  ASSERT_EQ(records[0].operations.size(), 2);
  EXPECT_EQ(records[0].operations[0].state, FlightState::kEnded);
  EXPECT_EQ(records[0].operations[1].operation, Collective::kBarrier);
  EXPECT_EQ(records[0].operations[1].state, FlightState::kStarted);
}

TEST(FlightOfProcess, SaysWhyThereIsNone) {
  const auto no_rank = transport::test::error_of_call([] { read_flights(::getpid()); });
  EXPECT_EQ(no_rank.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(no_rank.what(), HasSubstr("is no rank: it has no groups"));
  const auto no_process = transport::test::error_of_call([] { read_flights(1 << 30); });
  EXPECT_THAT(no_process.what(), HasSubstr("there is no process 1073741824 on this host"));
}

}  // namespace
}  // namespace trireme::collectives::test
