// Many keys of the store in one request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/system/threads.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/bootstrap/store.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;
using Entries = std::vector<std::pair<std::string, std::string>>;

TEST(StoreBatch, GetReturnsWhatWasSetInItsOrder) {
  const TestStore server;
  TestClient client(server.address(), 0);
  const std::string odd("\0\n", 2);
  client.set_many(Entries{{"a", "1"}, {"b", odd}, {"c", ""}});
  EXPECT_THAT(client.get_many(Strings{"c", "a", "b", "a"}, 20s), ElementsAre("", "1", odd, "1"));
  EXPECT_THAT(client.get_many(Strings{}, 20s), ElementsAre());
}

TEST(StoreBatch, WaitsForTheLastKey) {
  const TestStore server;
  TestClient a(server.address(), 0);
  TestClient b(server.address(), 1);
  auto values =
      std::async(std::launch::async, [&] { return a.get_many(Strings{"x", "y", "z"}, 20s); });
  b.set("y", "2");
  b.set("x", "old");
  b.set("x", "1");
  EXPECT_EQ(values.wait_for(50ms), std::future_status::timeout);
  EXPECT_THAT(b.missing(Strings{"x", "z", "y", "w"}), ElementsAre("z", "w"));
  b.set_many(Entries{{"z", "3"}});
  EXPECT_THAT(values.get(), ElementsAre("1", "2", "3"));
}

TEST(StoreBatch, ADeadlineNamesWhatIsMissing) {
  const TestStore server;
  TestClient client(server.address(), 4);
  client.set("here", "");
  const Error error =
      error_of_call([&] { client.get_many(Strings{"here", "there", "nowhere"}, 30ms); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("2 of 3 keys, 'there' the first,"));
  EXPECT_EQ(error.context().rank, 4);
  client.set("there", "x");
  EXPECT_EQ(client.get("there", 20s), "x");
}

TEST(StoreBatch, ALossEndsIt) {
  const TestStore server;
  TestClient a(server.address(), 0);
  auto lost = std::make_unique<TestClient>(server.address(), 2);
  auto waiting = std::async(std::launch::async, [&] {
    return error_of_call([&] { a.get_many(Strings{"never"}, 20s); });
  });
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  lost.reset();
  EXPECT_EQ(waiting.get().message(), "rank 2 is lost: its connection closed");
  EXPECT_THAT(a.missing(Strings{"never"}), ElementsAre("never"));
}

TEST(StoreBatch, MessagesAreBounded) {
  const TestStore server;
  TestClient client(server.address(), 0);
  const std::string half(kMaxStoreValue / 2, 'x');
  EXPECT_EQ(error_of_call([&] { client.set_many(Entries{{"a", half}, {"b", half}}); }).kind(),
            ErrorKind::kInvalidArgument);
  client.set("a", half);
  client.set("b", half);
  const Error error = error_of_call([&] { client.get_many(Strings{"a", "b"}, 20s); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("ask for fewer at once"));
  EXPECT_EQ(error_of_call([&] { pack(Strings(kMaxStoreBatch + 1)); }).kind(),
            ErrorKind::kInvalidArgument);
  client.check();
}

TEST(StoreBatch, PacksAreReadBack) {
  const Strings texts = {"", "a", std::string(300, 'b')};
  EXPECT_EQ(unpack(pack(texts)), texts);
  const std::string packed = pack(texts);
  for (std::size_t length = 0; length < packed.size(); ++length) {
    EXPECT_EQ(error_of_call([&] { unpack(packed.substr(0, length)); }).kind(),
              ErrorKind::kCorruptData);
  }
  EXPECT_EQ(error_of_call([&] { unpack(packed + "x"); }).kind(), ErrorKind::kCorruptData);
}

TEST(StoreBatch, OnlyTheFirstSetsOnce) {
  const TestStore server;
  TestClient a(server.address(), 0);
  TestClient b(server.address(), 1);
  EXPECT_EQ(a.set_once("key", "a"), "a");
  EXPECT_EQ(b.set_once("key", "b"), "a");
  EXPECT_EQ(b.get("key", 20s), "a");
}

TEST(StoreBatch, AFailureEndsTheStartOfAll) {
  const TestStore server;
  TestClient a(server.address(), 0);
  TestClient b(server.address(), 1);
  b.fail(Error(ErrorKind::kInvalidArgument, "no such plan"));
  b.fail(Error(ErrorKind::kIo, "later"));
  for (const Error& error :
       {error_of_call([&] { a.check(); }), error_of_call([&] { a.get("key", 20s); })}) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(error.message(), "no such plan");
  }
}

// Else it would hear that the store is lost, and name that.
TEST(StoreBatch, TheStoreStaysUntilAFailureIsKnown) {
  auto server = std::make_unique<TestStore>();
  TestClient a(server->address(), 0);
  TestClient b(server->address(), 1);
  b.fail(Error(ErrorKind::kInvalidArgument, "no such plan"));
  std::thread ending([&] { server.reset(); });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(error_of_call([&] { a.check(); }).message(), "no such plan");
  const auto told = std::chrono::steady_clock::now();
  ending.join();
  EXPECT_LT(std::chrono::steady_clock::now() - told, 500ms);
}

// It has the kind of a wait that was too long, and is none of this client's.
TEST(StoreBatch, ATimeoutThatARankToldIsToldOn) {
  const TestStore server;
  TestClient a(server.address(), 0);
  a.fail(Error(ErrorKind::kTimeout, "rank 3 does not come"));
  EXPECT_EQ(error_of_call([&] { a.get("key", 20s); }).message(), "rank 3 does not come");
  EXPECT_EQ(error_of_call([&] { a.get_many(Strings{"key"}, 20s); }).message(),
            "rank 3 does not come");
}

/// Lets one client in, answers its hello and takes nothing more; until `is_over`.
void serve_hello_only(Descriptor listener, const std::atomic<bool>& is_over) {
  Poller poller;
  Gate gate(std::move(listener), poller, {.token = Token::for_tests(), .door = "store"});
  std::optional<Descriptor> client;
  while (!client) {
    for (const Poller::Event& event : poller.wait(std::chrono::steady_clock::now() + 5s)) {
      if (auto socket = gate.serve(event)) client = std::move(socket);
    }
  }
  write_some(*client, to_bytes({.verb = StoreVerb::kValue, .id = 1}));
  while (!is_over) std::this_thread::sleep_for(5ms);
}

// Its process has not ended.
TEST(StoreBatch, AServerThatTakesNothingIsLate) {
  Descriptor listener = listen_on({});
  const Address address = local_address(listener);
  std::atomic<bool> is_over = false;
  auto server =
      std::async(std::launch::async, [&] { serve_hello_only(std::move(listener), is_over); });
  TestClient client(address, 0, {.deadline = 300ms});
  const Error error = error_of_call([&] { client.set("key", std::string(kMaxStoreValue, 'x')); });
  is_over = true;
  server.wait();
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("does not answer"));
}

TEST(Store, ForgetsWhatIsRemoved) {
  const TestStore server;
  TestClient client(server.address(), 0);
  client.set("a", "1");
  EXPECT_TRUE(client.remove("a"));
  EXPECT_FALSE(client.remove("a"));
  EXPECT_EQ(client.missing(std::vector<std::string>{"a"}), std::vector<std::string>{"a"});
  // While another waits for it and for more.
  TestClient other(server.address(), 1);
  client.set("a", "2");
  auto waiting = std::async(std::launch::async, [&] {
    return other.get_many(std::vector<std::string>{"a", "b"}, std::chrono::seconds(20));
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_TRUE(client.remove("a"));
  client.set("b", "3");
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  client.set("a", "4");
  EXPECT_EQ(waiting.get(), (std::vector<std::string>{"4", "3"}));
}

TEST(Store, HoldsNoMoreThanItsLimit) {
  const TestStore server;
  TestClient client(server.address(), 0);
  const std::string value(kMaxStoreValue, 'x');
  const auto key = [](std::size_t i) { return "key " + std::to_string(i); };
  const std::size_t most = kMaxStoreBytes / (kMaxStoreValue + 16);
  for (std::size_t i = 0; i < most; ++i) client.set(key(i), value);
  const Error error = error_of_call([&] { client.set(key(most), value); });
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  client.set(key(0), value);  // in place of what was there
  EXPECT_TRUE(client.remove(key(0)));
  client.set(key(most), value);
  client.check();  // nobody is lost
}

}  // namespace
}  // namespace trireme::transport::test
