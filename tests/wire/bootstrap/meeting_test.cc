// How ranks find the store.

#include "trireme/wire/bootstrap/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <string>

#include "tests/base/few_descriptors.h"
#include "tests/wire/system/threads.h"
#include "trireme/wire/system/interfaces.h"
#include "trireme/wire/system/local_socket.h"

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

TEST(Interfaces, HostOfARankIsWhatItsVariablesSay) {
  EXPECT_EQ(host_of({}), "");
  EXPECT_EQ(host_of({.host = "10.1.2.3"}), "10.1.2.3");
  EXPECT_EQ(host_of({.interface = "lo"}), "127.0.0.1");
}

}  // namespace
}  // namespace trireme::transport::test
