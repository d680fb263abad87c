// What `trireme doctor` finds of other processes.

#include "tests/wire/endpoint/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/doctor/doctor.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::doctor::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using transport::test::RankProcesses;
using transport::test::TestClient;
using transport::test::TestStore;
using namespace std::chrono_literals;

TEST(DoctorOfRanks, SeesTooFewDescriptors) {
  RankProcesses processes(1, [](int, const transport::Address&, const auto&) {
    const rlimit few{.rlim_cur = 100, .rlim_max = 200};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) throw Error(ErrorKind::kIo, "setrlimit");
    for (const Finding& finding : examine_host()) {
      if (finding.topic != "descriptors") continue;
      throw Error(ErrorKind::kUnavailable, std::string(to_text(finding.verdict)) + "; " +
                                               finding.found + "; " + finding.advice);
    }
  });
  processes.meet_at({"127.0.0.1", 1});
  EXPECT_THAT(processes.line_from(0),
              HasSubstr("slow; 100 (at most 200); ulimit -n 65536: a rank needs two"));
}

// Rank 1 has connected, and does not measure.
TEST(DoctorOfRanks, NamesWhoDoesNotAnswer) {
  RankProcesses processes(2, [](int rank, const transport::Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint =
        transport::connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
    ready();
    if (rank == 1) transport::test::wait_to_be_killed();
    measure_peers(*endpoint, 300ms);
  });
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const auto start = std::chrono::steady_clock::now();
  const std::string line = processes.line_from(0);
  EXPECT_THAT(line, HasSubstr("timeout"));
  EXPECT_THAT(line, HasSubstr("rank 1"));
  EXPECT_THAT(line, HasSubstr("doctor 0-1"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

// As `trireme doctor --pid` prints it.
TEST(DoctorOfRanks, ShowsTheFlightOfARankThatHangs) {
  RankProcesses processes(2, [](int rank, const transport::Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint =
        transport::connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
    collectives::Group group(*endpoint, {0, 1}, {.name = "data", .id = 1});
    std::vector<float> data(1000);
    transport::test::wait_for(group.all_reduce(std::span(data)));
    const auto work = rank == 0 ? group.barrier() : nullptr;
    ready();
    transport::test::wait_to_be_killed();
  });
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const auto records = collectives::read_flights(processes.process(0));
  ASSERT_EQ(records.size(), 1);
  const std::string text = collectives::to_text(records[0]);
  EXPECT_THAT(text, HasSubstr("group 'data': group rank 0 of 2"));
  EXPECT_THAT(text, ContainsRegex("0  ended .* all_reduce of 1000 f32 by sum\n"));
  EXPECT_THAT(text, ContainsRegex("1  started .* barrier\n"));
}

}  // namespace
}  // namespace trireme::doctor::test
