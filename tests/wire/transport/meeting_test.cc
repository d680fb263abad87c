// How ranks find the store, and the addresses at which they can be reached.

#include "trireme/wire/transport/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>

#include "tests/base/few_descriptors.h"
#include "tests/wire/transport/ranks.h"
#include "tests/wire/transport/stores.h"
#include "trireme/wire/transport/interfaces.h"
#include "trireme/wire/transport/shm/local_socket.h"
#include "trireme/wire/transport/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::string own_job(const std::string& name) { return name + std::to_string(::getpid()); }

TEST(Announcement, IsFoundByTheJobsId) {
  auto text = std::async(std::launch::async,
                         [] { return find_announcement(own_job("a"), Clock::now() + 10s); });
  const Announcement other(own_job("b"), "127.0.0.1:2");
  EXPECT_EQ(text.wait_for(30ms), std::future_status::timeout);
  const Announcement announcement(own_job("a"), "127.0.0.1:1");
  EXPECT_EQ(text.get(), "127.0.0.1:1");
  EXPECT_EQ(find_announcement(own_job("a"), Clock::now() + 10s), "127.0.0.1:1");
}

TEST(Announcement, ASecondOneIsRefused) {
  const Announcement announcement(own_job("a"), "x");
  const Error error = error_of_call([] { const Announcement second(own_job("a"), "y"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("rank 0 started twice?"));
}

// With the last descriptor somebody asks; when there are some again, it is told.
TEST(Announcement, OutlivesAWantOfDescriptors) {
  if (!trireme::test::kMayWantDescriptors) GTEST_SKIP() << "the sanitizer opens pipes";
  const Announcement announcement(own_job("a"), "127.0.0.1:1");
  const std::string name = "trireme/" + std::to_string(::getuid()) + "/" + own_job("a");
  std::optional<trireme::test::FewDescriptors> few(1);
  const Descriptor asking = internal::try_connect_locally(name);
  EXPECT_FALSE(wait_readable(asking, Clock::now() + 100ms));
  few.reset();
  EXPECT_TRUE(wait_readable(asking, Clock::now() + 5s));
  EXPECT_EQ(find_announcement(own_job("a"), Clock::now() + 5s), "127.0.0.1:1");
}

TEST(Announcement, ItsAbsenceIsNamed) {
  const Error error =
      error_of_call([] { find_announcement(own_job("none"), Clock::now() + 50ms); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr(own_job("none")));
  EXPECT_THAT(error.message(), HasSubstr("TRIREME_STORE=HOST:PORT"));
}

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

// As on hosts whose own name is 127.0.1.1 to them. This one has many addresses too: 127.x.x.x.
TEST(Meeting, Rank0ListensOnAllAddressesOfItsHost) {
  const std::string name(70, 'x');  // which it does not know at all
  const int port = local_address(listen_on({})).port;
  const Meeting meeting = meet({.launcher = Launcher::kSlurm,
                                .rank = 0,
                                .world_size = 2,
                                .store_host = name,
                                .store_port = port,
                                .token = "0123456789abcdef"},
                               Clock::now() + 10s, Logger(LogLevel::kOff));
  EXPECT_EQ(meeting.store.host, name);
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    StoreClient client({host, port}, 1, {.deadline = 2s}, meeting.token);
    client.shutdown();
  }
}

// Of this host's addresses, if it has one that others reach.
TEST(Meeting, AtAnAddressOfItsHostRank0ListensThereAlone) {
  for (const Interface& interface : list_interfaces()) {
    if (interface.is_loopback || !interface.is_up || interface.is_v6 || interface.host.empty()) {
      continue;
    }
    const int port = local_address(listen_on({interface.host, 0})).port;
    const Meeting meeting = meet({.launcher = Launcher::kOther,
                                  .store_host = interface.host,
                                  .store_port = port,
                                  .token = "0123456789abcdef"},
                                 Clock::now() + 10s, Logger(LogLevel::kOff));
    EXPECT_EQ(meeting.server->address().host, interface.host);
    return;
  }
  GTEST_SKIP() << "this host has no address but its loopback";
}

TEST(Meeting, BeyondTheHostAGuessableTokenIsRefused) {
  for (const int rank : {0, 1}) {
    const Error error = error_of_call([rank] {
      meet({.launcher = Launcher::kOther,
            .rank = rank,
            .world_size = 2,
            .store_host = "node-1",
            .store_port = 29'500},
           Clock::now() + 10s, Logger(LogLevel::kOff));
    });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("set TRIREME_TOKEN to one secret"));
  }
  const Token guessable = Token::guessable("world\n\n0\n29500");
  EXPECT_THROW(StoreServer({"0.0.0.0", 0}, guessable), Error);
  EXPECT_NO_THROW(StoreServer({"127.0.0.1", 0}, guessable));
  EXPECT_NO_THROW(StoreServer({"0.0.0.0", 0}, Token("a secret")));
}

TEST(Meeting, OnOneHostNobodyElseIsHeard) {
  const int port = local_address(listen_on({})).port;
  const Meeting meeting =
      meet({.launcher = Launcher::kSlurm, .store_host = "localhost", .store_port = port},
           Clock::now() + 10s, Logger(LogLevel::kOff));
  EXPECT_TRUE(is_loopback(meeting.server->address().host));
}

TEST(Interfaces, AreKnownByNameAndAddress) {
  EXPECT_EQ(host_of_interface("lo"), "127.0.0.1");
  // The name alone: with "interface " before it the speed of no link was known.
  EXPECT_EQ(interface_of_host("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of_host("192.0.2.77"), std::nullopt);
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  const Error error = error_of_call([] { host_of_interface("no such"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("TRIREME_INTERFACE may be: "));
  EXPECT_THAT(error.message(), HasSubstr("lo"));
}

TEST(Interfaces, HostOfARankIsWhatItsVariablesSay) {
  EXPECT_EQ(host_of({}), "");
  EXPECT_EQ(host_of({.host = "10.1.2.3"}), "10.1.2.3");
  EXPECT_EQ(host_of({.interface = "lo"}), "127.0.0.1");
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
