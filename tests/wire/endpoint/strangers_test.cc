// Connections of others than the job's ranks, many at once: the job does not suffer.

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <future>
#include <string>

#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/bootstrap/admission.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kManyStrangers = 256;

int num_open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (folder != nullptr && ::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// Connections that say: nothing, garbage, a third of a proof, the proof of another job.
std::vector<Descriptor> send_strangers(const std::function<Descriptor()>& connect, int count) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < count; ++i) {
    strangers.push_back(connect());
    std::vector<std::byte> bytes = random_bytes(static_cast<std::uint64_t>(i), kProofBytes);
    const std::string_view magic = "TRIREME!";
    if (i % 4 >= 2) std::copy_n(std::as_bytes(std::span(magic)).begin(), 8, bytes.begin());
    if (i % 4 == 2) bytes.resize(24);
    if (i % 4 != 0) write_some(strangers.back(), bytes);
  }
  return strangers;
}

/// Whether the other side closes it in time.
bool is_closed(const Descriptor& socket, Deadline deadline) {
  std::array<std::byte, 1000> buffer;
  while (wait_readable(socket, deadline)) {
    if (!read_some(socket, buffer)) return true;
  }
  return false;
}

TEST(Strangers, AtTheStoreDelayNobody) {
  const StoreServer server({}, Token("secret"), Logger(LogLevel::kOff));
  const auto strangers =
      send_strangers([&] { return connect_to(server.address(), {}); }, kManyStrangers);
  const auto start = Clock::now();
  StoreClient client(server.address(), 0, {}, Token("secret"));
  client.set("key", "value");
  EXPECT_EQ(client.get("key", 20s), "value");
  EXPECT_LT(Clock::now() - start, 2s);
  for (const Descriptor& stranger : strangers) EXPECT_TRUE(is_closed(stranger, start + 8s));
  client.check();
  client.shutdown();
}

TEST(Strangers, LeaveNoDescriptors) {
  const StoreServer server({}, Token("secret"), Logger(LogLevel::kOff));
  const int before = num_open_descriptors();
  for (int round = 0; round < 3; ++round) {
    auto strangers = send_strangers([&] { return connect_to(server.address(), {}); }, 20);
    strangers.clear();
  }
  // Whoever comes later is served later: the server has accepted all of them.
  StoreClient(server.address(), 0, {}, Token("secret")).shutdown();
  const auto deadline = Clock::now() + 5s;
  while (num_open_descriptors() > before && Clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(num_open_descriptors(), before);
}

TEST(Strangers, WithAnotherTokenAreToldSo) {
  const StoreServer server({}, Token("secret"), Logger(LogLevel::kOff));
  const Error error =
      error_of_call([&] { StoreClient client(server.address(), 1, {}, Token("other")); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr(to_text(server.address())));
  EXPECT_THAT(error.message(), HasSubstr("TRIREME_TOKEN"));
  StoreClient client(server.address(), 0, {}, Token("secret"));
  client.check();  // nobody is lost
}

// More than may wait at a time: the listener rests until the first have been closed.
TEST(Strangers, BeyondTheLimitWaitOutside) {
  Poller poller;
  Gate gate(listen_on({}), poller,
            {.token = Token("secret"),
             .door = "store",
             .logger = Logger(LogLevel::kOff),
             .patience = 10s,
             .patience_when_full = 100ms,
             .max_strangers = 8});
  const Address address = local_address(gate.listener());
  std::vector<Descriptor> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(connect_to(address, {}));
  auto rank = std::async(std::launch::async, [&] {
    const Descriptor socket = connect_to(address, {});
    return enter(socket, Token("secret"), "store", "it", wait_until(Clock::now() + 5s, "it"));
  });
  const int before = num_open_descriptors();
  const auto start = Clock::now();
  std::optional<Descriptor> admitted;
  while (!admitted && Clock::now() < start + 5s) {
    for (const Poller::Event& event : poller.wait(gate.next_deadline())) {
      if (auto socket = gate.serve(event)) admitted = std::move(socket);
    }
    gate.expire();
    EXPECT_LE(num_open_descriptors(), before + 9);
  }
  EXPECT_TRUE(admitted.has_value());
  EXPECT_TRUE(rank.get());
  EXPECT_LT(Clock::now() - start, 2s);
}

// A line each would fill the disk.
TEST(Strangers, AreCountedInOneLine) {
  testing::internal::CaptureStderr();
  {
    const StoreServer server({}, Token("secret"), Logger(LogLevel::kWarning, "store"));
    const auto strangers = send_strangers([&] { return connect_to(server.address(), {}); }, 40);
    for (std::size_t i = 1; i < strangers.size(); i += 2) {
      EXPECT_TRUE(is_closed(strangers[i], Clock::now() + 5s));
    }
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("refused connections to the store: 10 did not speak our protocol, "
                              "10 had another token"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

/// An abstract Unix socket, by the name that a rank has published.
Descriptor connect_to_abstract(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  EXPECT_EQ(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address),
                      static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size())),
            0);
  return socket;
}

// Rank 0 waits while strangers come to both of its doors; then rank 1 starts.
TEST(Strangers, AtTheDoorsOfARankDelayNobody) {
  const Token token("secret");
  const StoreServer server({}, token, Logger(LogLevel::kOff));
  std::vector<std::unique_ptr<Endpoint>> endpoints(2);
  std::promise<void> are_there;
  auto start = Clock::now();
  std::vector<Descriptor> strangers;
  auto come = std::async(std::launch::async, [&] {
    StoreClient store(server.address(), 7, {}, token);
    const Address address = parse_address(store.get("world/address/0", 20s));
    const std::string host = store.get("world/host/0", 20s);
    const std::string name = host.substr(host.find(' ') + 1);
    strangers = send_strangers([&] { return connect_to(address, {}); }, kManyStrangers);
    for (Descriptor& local : send_strangers([&] { return connect_to_abstract(name); }, 64)) {
      strangers.push_back(std::move(local));
    }
    store.shutdown();
    start = Clock::now();
    are_there.set_value();
  });
  const auto ready = are_there.get_future().share();
  expect_no_errors(run_threads(2, [&](int rank) {
    StoreClient store(server.address(), rank, {}, token);
    if (rank == 1) ready.wait();
    endpoints[rank] = connect_tcp_world(
        {.store = store, .rank = rank, .world_size = 2, .logger = Logger(LogLevel::kOff)});
    EXPECT_LT(Clock::now() - start, 2s);
    EXPECT_TRUE(endpoints[rank]->local_peers().contains(1 - rank));
    endpoints[rank]->shutdown(20s);
    store.shutdown();
  }));
  come.get();
}

}  // namespace
}  // namespace trireme::transport::test
