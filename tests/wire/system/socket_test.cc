// Connecting to who is not there, yet or at all.

#include "trireme/wire/system/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/system/threads.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A free port as the system chooses for those who connect: they have even numbers.
int free_port() {
  for (int i = 0; i < 1000; ++i) {
    const int port = local_address(listen_on({})).port ^ 1;
    try {
      return local_address(listen_on({.host = "127.0.0.1", .port = port})).port;
    } catch (const Error&) {  // in use
      continue;
    }
  }
  return 0;
}

// Of some ten thousand tries one is given the port that it connects to.
TEST(Connect, NobodyConnectsToItself) {
  const ConnectPolicy without_pauses{.deadline = 1s, .first_pause = 0ms, .longest_pause = 0ms};
  const Error error =
      error_of_call([&] { connect_to({"127.0.0.1", free_port()}, without_pauses); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("Connection refused"));
}

// Asked for again until the deadline. No server of names is asked: a part is too long for one.
TEST(Connect, AHostMayBeKnownLater) {
  const std::string host(70, 'x');
  const auto start = Clock::now();
  const Error error = error_of_call([&] { connect_to({host, 1}, {.deadline = 100ms}); });
  EXPECT_GE(Clock::now() - start, 50ms);
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("within 100 ms: no host is called '" + host + "'"));
}

/// A listener that takes no more connections: a further one is neither accepted nor refused.
struct FullListener {
  explicit FullListener(const Address& address) : listener(listen_on(address)) {
    ::listen(listener.number(), 0);
    for (int i = 0; i < 2; ++i) {
      try {
        waiting.push_back(connect_to(local_address(listener), {.deadline = 50ms}));
      } catch (const Error&) {
        return;  // it is full
      }
    }
  }

  Descriptor listener;
  std::vector<Descriptor> waiting;
};

// Else a first address that swallows everything takes the time of the others.
TEST(Connect, ATryIsBounded) {
  const FullListener silent({});
  const Address address = local_address(silent.listener);
  const ConnectPolicy policy{.deadline = 5s, .longest_try = 50ms};
  auto connected = std::async(std::launch::async, [&] { return connect_to(address, policy); });
  EXPECT_EQ(connected.wait_for(200ms), std::future_status::timeout);
  while (accept_from(silent.listener)) continue;  // the next try gets in
  EXPECT_EQ(connected.wait_for(600ms), std::future_status::ready);
  EXPECT_TRUE(connected.get().is_open());
}

// Ranks waited for the whole deadline where nobody can ever answer.
TEST(Socket, WithoutALoopbackItIsSaidAtOnce) {
  bool has_namespace = false;
  std::thread([&] {
    has_namespace = ::unshare(CLONE_NEWNET) == 0;
    if (!has_namespace) return;
    const auto start = std::chrono::steady_clock::now();
    const Error error =
        error_of_call([] { connect_to({"127.0.0.1", 9}, {.deadline = std::chrono::seconds(60)}); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
    EXPECT_THAT(error.message(), testing::HasSubstr("is the loopback interface up"));
  }).join();
  if (!has_namespace) GTEST_SKIP() << "network namespaces are not permitted here";
}

// From 5 ranks on, 64 KiB per connection held fast links to 0.65 GB/s at 100 us.
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

TEST(Socket, WindowsAreSharedOnSlowLinksAlone) {
  using internal::shared_window;
  static_assert(shared_window(4, 1000) == 128 * 1024 / 3);
  static_assert(shared_window(9, 1000) == 32 * 1024);
  static_assert(shared_window(9, 10'000) == 64 * 1024);
  static_assert(shared_window(9, 25'000) == 0);
  static_assert(shared_window(9, std::nullopt) == 0);
  EXPECT_FALSE(megabits_of_interface("no such"));
  EXPECT_FALSE(megabits_of_interface("../lo"));
}

}  // namespace
}  // namespace trireme::transport::test
