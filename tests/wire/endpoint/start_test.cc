// Ranks that meet in the store and connect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/meeting.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::string own_job(const std::string& name) { return name + std::to_string(::getpid()); }

/// Ranks that meet as `environment` says and are connected.
Errors connect_ranks(int num_ranks, const RankEnvironment& environment,
                     const std::function<void(int, TcpOptions&)>& change = nullptr) {
  std::vector<std::unique_ptr<Endpoint>> endpoints(num_ranks);
  return run_threads(num_ranks, [&](int rank) {
    RankEnvironment own = environment;
    own.rank = rank;
    own.world_size = num_ranks;
    const Logger logger(LogLevel::kOff);
    const Meeting meeting = meet(own, Clock::now() + 10s, logger);
    StoreClient store(meeting.store, rank, {}, meeting.token);
    TcpOptions options{.store = store, .rank = rank, .world_size = num_ranks, .host = host_of(own)};
    if (change) change(rank, options);
    endpoints[rank] = connect_tcp_world(options);
    endpoints[rank]->shutdown(10s);
    store.shutdown();
    // Rank 0 serves the others until all have said goodbye.
    if (rank == 0) std::this_thread::sleep_for(100ms);
  });
}

TEST(Meeting, ByTheJobsIdOnOneHost) {
  expect_no_errors(connect_ranks(3, {.launcher = Launcher::kOpenMpi, .job_id = own_job("mpi")}));
}

TEST(Meeting, AtAnAddressWithAToken) {
  const int port = [] {
    return local_address(listen_on({})).port;  // free again
  }();
  expect_no_errors(connect_ranks(2, {.launcher = Launcher::kSlurm,
                                     .store_host = "localhost",
                                     .store_port = port,
                                     .interface = "lo",
                                     .token = "0123456789abcdef"}));
}

// Both waited for the whole deadline, and then another rank was blamed.
TEST(Meeting, TwoProcessesWithOneRankAreNamedAtOnce) {
  const TestStore server;
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_threads(3, [&](int i) {
    const int rank = std::min(i, 1);  // of three; nobody is rank 2
    TestClient store(server.address(), rank);
    connect_tcp_world({.store = store, .rank = rank, .world_size = 3, .deadline = 20s});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), HasSubstr("two processes were started as rank 1 of 3"));
  }
}

// A rank that gives up first was taken for the lost one by the others.
TEST(Meeting, ARankThatNeverComesIsNamedByAll) {
  const TestStore server;
  const Errors errors = run_threads(3, [&](int rank) {
    TestClient store(server.address(), rank);
    const auto deadline = 300ms + rank * 100ms;
    connect_tcp_world({.store = store, .rank = rank, .world_size = 4, .deadline = deadline});
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kTimeout) << error->what();
    EXPECT_THAT(error->message(), HasSubstr("not connected to rank 3 within 300 ms"));
  }
}

// Rank 1 stands for one on another host: it has published an address that is no loopback.
TEST(Interfaces, ALoopbackAddressBesideOthersIsRefused) {
  const TestStore server;
  TestClient far(server.address(), 1);
  far.set("world/address/1", "10.9.8.7:4000");
  far.set("world/host/1", "none ");
  const Error error = error_of_call([&] {
    TestClient store(server.address(), 0);
    connect_tcp_world({.store = store, .rank = 0, .world_size = 2});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("rank 0 listens on 127.0.0.1:"));
  EXPECT_THAT(error.message(), HasSubstr("(interface lo)"));
  EXPECT_THAT(error.message(), HasSubstr("rank 1 on 10.9.8.7:4000"));
  EXPECT_THAT(error.message(), HasSubstr("set TRIREME_INTERFACE or TRIREME_HOST for rank 0"));
}

}  // namespace
}  // namespace trireme::transport::test
