#include "trireme/wire/bootstrap/store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <string>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/system/threads.h"
#include "trireme/wire/bootstrap/admission.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(Store, GetReturnsWhatWasSet) {
  const TestStore server;
  TestClient a(server.address(), 0);
  TestClient b(server.address(), 1);
  const std::string large(kMaxStoreValue, 'x');
  const std::string odd("\0\xff\n", 3);
  a.set("large", large);
  a.set("odd", odd);
  a.set("empty", "");
  EXPECT_EQ(b.get("large", 20s), large);
  EXPECT_EQ(b.get("odd", 20s), odd);
  EXPECT_EQ(b.get("empty", 20s), "");
  b.set("odd", "new");
  EXPECT_EQ(a.get("odd", 20s), "new");
}

TEST(Store, GetWaits) {
  const TestStore server;
  TestClient a(server.address(), 0);
  auto value = std::async(std::launch::async, [&] { return a.get("key", 20s); });
  EXPECT_EQ(value.wait_for(20ms), std::future_status::timeout);
  TestClient b(server.address(), 1);
  b.set("other", "no");
  b.set("key", "yes");
  EXPECT_EQ(value.get(), "yes");
}

TEST(Store, GetGivesUpAndGoesOn) {
  const TestStore server;
  TestClient client(server.address(), 3);
  const Error error = error_of_call([&] { client.get("nothing", 20ms); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("nobody has set 'nothing'"));
  EXPECT_THAT(error.message(), HasSubstr("within 20 ms"));
  EXPECT_EQ(error.context().rank, 3);
  client.set("nothing", "late");
  client.set("key", "value");
  EXPECT_EQ(client.get("key", 20s), "value");
}

TEST(Store, AddsFromManyRanks) {
  const TestStore server;
  expect_no_errors(run_threads(8, [&](int rank) {
    TestClient client(server.address(), rank);
    for (int i = 0; i < 50; ++i) client.add("sum", rank);
    client.add("arrived", 1);
    while (client.add("arrived", 0) < 8) {
    }
    EXPECT_EQ(client.get("sum", 20s), "1400");
    client.shutdown();
  }));
}

TEST(Store, AddNeedsANumber) {
  const TestStore server;
  TestClient client(server.address(), 0);
  client.set("key", "twelve");
  const Error error = error_of_call([&] { client.add("key", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("'key' is not a number"));
  client.set("key", "-12");
  EXPECT_EQ(client.add("key", 5), -7);
}

TEST(Store, RefusesWhatIsTooLarge) {
  const TestStore server;
  TestClient client(server.address(), 0);
  for (const auto& [key, value] :
       {std::pair<std::size_t, std::size_t>{kMaxStoreKey + 1, 0}, {1, kMaxStoreValue + 1}}) {
    const Error error =
        error_of_call([&] { client.set(std::string(key, 'k'), std::string(value, 'v')); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
  client.set(std::string(kMaxStoreKey, 'k'), "value");
}

TEST(Store, ARankThatGoesAwayIsLost) {
  const TestStore server;
  TestClient a(server.address(), 0);
  auto b = std::make_unique<TestClient>(server.address(), 2);
  a.set("key", "value");
  auto waiting =
      std::async(std::launch::async, [&] { return error_of_call([&] { a.get("never", 20s); }); });
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  const Clock::time_point start = Clock::now();
  b.reset();
  const Error first = waiting.get();
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(first.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(first.message(), "rank 2 is lost: its connection closed");
  EXPECT_EQ(first.context().peer, 2);
  EXPECT_EQ(first.context().rank, 0);
  // Later too, also for what is set.
  EXPECT_EQ(error_of_call([&] { a.get("key", 20s); }).message(), first.message());
  EXPECT_EQ(error_of_call([&] { a.check(); }).message(), first.message());
  TestClient c(server.address(), 5);
  EXPECT_EQ(error_of_call([&] { c.get("key", 20s); }).message(), first.message());
}

TEST(Store, GoodbyeIsNoLoss) {
  const TestStore server;
  TestClient a(server.address(), 0);
  {
    TestClient b(server.address(), 1);
    b.shutdown();
  }
  a.check();
  a.set("key", "value");
  EXPECT_EQ(a.get("key", 20s), "value");
}

// As trireme doctor does, which somebody may interrupt.
TEST(Store, AnObserverThatGoesAwayIsNoLoss) {
  const TestStore server;
  TestClient a(server.address(), 0);
  {
    TestClient observer(server.address(), kObserver);
    observer.check();
    const Error error = error_of_call([&] { observer.get("nothing", 5ms); });
    EXPECT_FALSE(error.context().rank.has_value());
  }
  TestClient(server.address(), kObserver).shutdown();
  EXPECT_EQ(error_of_call([&] { a.get("key", 50ms); }).kind(), ErrorKind::kTimeout);
  a.check();
}

TEST(Store, TheOwnerMaySayWhoIsLost) {
  TestStore server;
  TestClient a(server.address(), 0);
  auto b = std::make_unique<TestClient>(server.address(), 1);
  server.mark_lost(1, "killed by signal 9");
  const std::string text = "rank 1 is lost: killed by signal 9";
  EXPECT_EQ(error_of_call([&] { a.get("key", 20s); }).message(), text);
  b.reset();
  server.mark_lost(2, "it has ended");
  EXPECT_EQ(error_of_call([&] { a.get("key", 20s); }).message(), text);
}

TEST(Store, WhoHasSaidGoodbyeIsNotLostByItsEnd) {
  TestStore server;
  TestClient a(server.address(), 0);
  TestClient(server.address(), 1).shutdown();
  server.mark_lost(1, "its process ended");
  a.check();
  server.mark_lost(2, "it never came");
  EXPECT_EQ(error_of_call([&] { a.check(); }).message(), "rank 2 is lost: it never came");
}

TEST(Store, ItsEndIsALoss) {
  auto server = std::make_unique<TestStore>();
  TestClient client(server->address(), 0);
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of_call([&] { client.get("never", 20s); }); });
  const std::string text =
      "the store at " + to_text(server->address()) +
      " is lost: the process that serves it (rank 0 or the launcher) has ended";
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  server.reset();
  const Error error = waiting.get();
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.message(), text);
  EXPECT_EQ(error_of_call([&] { client.set("key", "value"); }).message(), text);
  client.shutdown();
}

TEST(Store, APortInUseIsNamed) {
  const TestStore server;
  const Error error = error_of_call([&] { const TestStore second(server.address()); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr(to_text(server.address())));
  EXPECT_THAT(error.message(), HasSubstr("another program uses this port"));
}

TEST(Store, AnAddressOfAnotherHostIsNamed) {
  const Error error = error_of_call([] { const TestStore server({"192.0.2.1", 0}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("192.0.2.1"));
}

TEST(Store, ClientsMayComeFirst) {
  std::optional<TestStore> server(std::in_place);
  const Address address = server->address();
  server.reset();
  auto value = std::async(std::launch::async, [&] {
    TestClient client(address, 0);
    return client.get("key", 20s);
  });
  EXPECT_EQ(value.wait_for(30ms), std::future_status::timeout);
  server.emplace(address);
  TestClient(address, 1).set("key", "value");
  // Rank 1 went away without a word: that may be noticed before or after the get.
  try {
    EXPECT_EQ(value.get(), "value");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  }
}

TEST(Store, ConnectingHasALimit) {
  std::optional<TestStore> server(std::in_place);
  const Address address = server->address();
  server.reset();
  const Error error = error_of_call([&] { TestClient client(address, 0, {.deadline = 50ms}); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("cannot connect to " + to_text(address)));
  EXPECT_THAT(error.message(), HasSubstr("Connection refused"));
}

/// A connection that has proved to belong to the job and not said its rank.
Descriptor enter_store(const Address& address) {
  Descriptor socket = connect_to(address, {});
  EXPECT_TRUE(
      enter(socket, Token::for_tests(), "store", "it", wait_until(Clock::now() + 5s, "it")));
  return socket;
}

/// Sends `bytes` on a connection of its own; whether the server closes it.
bool is_closed_after(const Address& address, std::span<const std::byte> bytes) {
  const Descriptor socket = enter_store(address);
  write_some(socket, bytes);
  std::array<std::byte, 1000> answer;
  const Deadline deadline = Clock::now() + 5s;
  while (wait_readable(socket, deadline)) {
    if (!read_some(socket, answer)) return true;
  }
  return false;
}

std::vector<std::byte> with_hello(const StoreMessage& message) {
  std::vector<std::byte> bytes = to_bytes({.verb = StoreVerb::kHello, .number = 7});
  const std::vector<std::byte> rest = to_bytes(message);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

TEST(Store, GarbageEndsItsConnectionOnly) {
  const TestStore server;
  TestClient client(server.address(), 0);
  EXPECT_TRUE(is_closed_after(server.address(), random_bytes(1, 5000)));
  EXPECT_TRUE(
      is_closed_after(server.address(), std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n"))));
  EXPECT_TRUE(is_closed_after(server.address(), to_bytes({.verb = StoreVerb::kGet, .key = "key"})));
  EXPECT_TRUE(
      is_closed_after(server.address(), to_bytes({.verb = StoreVerb::kHello, .number = -2})));
  client.check();
  client.set("key", "value");
  EXPECT_EQ(client.get("key", 20s), "value");
}

TEST(Store, GarbageFromARankIsItsLoss) {
  for (const StoreMessage& bad : {StoreMessage{.verb = StoreVerb::kHello, .number = 7},
                                  StoreMessage{.verb = StoreVerb::kValue}}) {
    const TestStore server;
    TestClient client(server.address(), 0);
    EXPECT_TRUE(is_closed_after(server.address(), with_hello(bad)));
    const Error error = error_of_call([&] { client.get("key", 20s); });
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_THAT(error.message(), HasSubstr("rank 7 is lost: its connection to the store failed"));
  }
}

/// A rank that waits for `key`, of whose connection the server's end is no socket any more:
/// whatever the server does with it fails.
Descriptor broken_waiting_rank(StoreClient& other, const Address& address, int rank) {
  Descriptor client = enter_store(address);
  write_some(client, to_bytes({.verb = StoreVerb::kHello, .number = rank}));
  std::array<std::byte, 1000> answer;
  EXPECT_TRUE(wait_readable(client, Clock::now() + 5s));
  EXPECT_GT(read_some(client, answer), 0U);
  write_some(client, to_bytes({.verb = StoreVerb::kGet, .key = "key"}));
  other.add("waiting", 1);  // what is asked later is served later
  const int port = local_address(client).port;
  const Descriptor no_socket(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int number = 3; number < 1024; ++number) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(number, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (ntohs(peer.sin_port) == port) ::dup3(no_socket.number(), number, O_CLOEXEC);
  }
  return client;
}

// The one that set the key was.
TEST(Store, WhoCannotBeAnsweredIsTheLostOne) {
  const TestStore server;
  TestClient setter(server.address(), 0);
  const Descriptor waiting = broken_waiting_rank(setter, server.address(), 7);
  setter.set("key", "value");
  const Error error = error_of_call([&] { setter.check(); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.message(), HasSubstr("rank 7 is lost: its connection to the store failed"));
  setter.set("key", "again");
}

// The process ended, by an exception out of the store's thread.
TEST(Store, ALossIsToldToWhoCanHearIt) {
  const TestStore server;
  TestClient client(server.address(), 0);
  auto lost = std::make_unique<TestClient>(server.address(), 2);
  const Descriptor deaf = broken_waiting_rank(client, server.address(), 7);
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of_call([&] { client.get("never", 20s); }); });
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  lost.reset();
  EXPECT_EQ(waiting.get().message(), "rank 2 is lost: its connection closed");
  TestClient late(server.address(), 5);
  late.set("key", "value");
  EXPECT_EQ(error_of_call([&] { late.check(); }).message(),
            "rank 2 is lost: its connection closed");
}

}  // namespace
}  // namespace trireme::transport::test
