// A host that goes silent in the middle of messages: a link between two network namespaces that
// goes down.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kNoticed = 10s;
constexpr auto kMachine = 3s;  // what a busy one may add

/// Why the test cannot be run on this machine.
struct NotPermitted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void run(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t process = -1;
  int status = -1;
  const int failed =
      ::posix_spawnp(&process, pointers[0], nullptr, nullptr, pointers.data(), environ);
  if (failed == 0) ::waitpid(process, &status, 0);
  if (status != 0) throw NotPermitted("'" + text + "' fails");
}

void run_ip(const std::string& text) { run("ip " + text); }

void enter_new_namespaces(int flags) {
  if (::unshare(flags) != 0) {
    throw NotPermitted(std::string("no network namespaces: ") + std::strerror(errno));
  }
}

/// Makes this process the administrator of a network of its own. It must have one thread.
void enter_own_network() {
  const std::string user = std::to_string(::getuid());
  enter_new_namespaces(CLONE_NEWUSER | CLONE_NEWNET);
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  run_ip("link set lo up");
}

/// Gives the calling thread another network and links it with that of the process.
void enter_far_network() {
  const std::string process = std::to_string(::getpid());
  enter_new_namespaces(CLONE_NEWNET);
  run_ip("link add far type veth peer name near netns " + process);
  run_ip("address add 10.77.0.2/24 dev far");
  run_ip("link set far up");
}

/// A rank exchanges messages with the other until that fails: what it says.
std::string exchange_messages(const Address& address, int rank,
                              const std::function<void()>& ready) {
  TestClient store(address, rank);
  const auto endpoint = connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
  const std::vector<std::byte> message(4 << 20);
  std::vector<std::byte> received;
  try {
    for (int round = 0;; ++round) {
      const WorkPtr recv = endpoint->recv(1 - rank, 1, into(received));
      const WorkPtr send = endpoint->send(1 - rank, 1, message);
      for (const WorkPtr& work : {recv, send}) {
        if (!work->wait_for(kNoticed + kMachine)) return "nothing was noticed";
      }
      if (round == 3) ready();
    }
  } catch (const Error& error) {
    return error.message();
  }
}

/// A rank that waits for a message which never comes, so that nothing is under way to it.
std::string wait_idly(const Address& address, int rank, const std::function<void()>& ready) {
  TestClient store(address, rank);
  const auto endpoint = connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
  std::vector<std::byte> received;
  try {
    const WorkPtr recv = endpoint->recv(1 - rank, 1, into(received));
    std::this_thread::sleep_for(100ms);
    ready();
    return recv->wait_for(kNoticed + kMachine) ? "a message came" : "nothing was noticed";
  } catch (const Error& error) {
    return error.message();
  }
}

/// A rank exchanges ten messages with the other; the link may be as slow as it likes.
std::string exchange_ten_messages(const Address& address, int rank,
                                  const std::function<void()>& ready) {
  TestClient store(address, rank);
  const auto endpoint = connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
  std::vector<std::byte> received;
  for (int round = 0; round < 10; ++round) {
    const std::vector<std::byte> message = random_bytes(static_cast<std::uint64_t>(round), 1 << 20);
    const WorkPtr recv = endpoint->recv(1 - rank, 1, into(received));
    wait_for(endpoint->send(1 - rank, 1, message));
    wait_for(recv);
    if (received != message) return "other bytes than were sent";
    if (round == 3) ready();
  }
  endpoint->shutdown(20s);
  store.shutdown();
  return "ten messages";
}

using RankPart = std::string (*)(const Address&, int, const std::function<void()>&);

/// The child's part: what both ranks say, a line each. The link is spoilt when rank 0 is ready.
std::string messages_of_ranks(
    RankPart part, const std::function<void()>& spoil_link,
    const std::function<void()>& prepare_link = [] {}) {
  enter_own_network();
  std::promise<void> is_linked, is_up, is_moving;
  std::promise<Address> store_address;
  auto far = std::async(std::launch::async, [&] {
    try {
      enter_far_network();
    } catch (...) {
      is_linked.set_exception(std::current_exception());
      return std::string();
    }
    is_linked.set_value();
    return part(store_address.get_future().get(), 1, [] {});
  });
  is_linked.get_future().get();
  run_ip("address add 10.77.0.1/24 dev near");
  run_ip("link set near up");
  prepare_link();
  const TestStore server({"10.77.0.1", 0});
  store_address.set_value(server.address());
  auto near = std::async(std::launch::async, [&] {
    bool is_ready = false;
    const auto ready = [&] {
      if (!std::exchange(is_ready, true)) is_moving.set_value();
    };
    try {
      return part(server.address(), 0, ready);
    } catch (const Error& error) {
      ready();  // nobody waits for what will not come
      return "the start failed: " + error.message();
    }
  });
  is_moving.get_future().get();
  spoil_link();
  return near.get() + "\n" + far.get() + "\n";
}

/// What `body` returns in a process of its own, or why it cannot.
std::string text_of_child(const std::function<std::string()>& body) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return "no pipe";
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = body();
    } catch (const NotPermitted& error) {
      text = std::string("skipped: ") + error.what();
    } catch (const std::exception& error) {
      text = error.what();
    }
    [[maybe_unused]] const auto written = ::write(pipe[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  char letter = 0;
  while (::read(pipe[0], &letter, 1) == 1) text += letter;
  ::close(pipe[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return text;
}

// 'cannot read from a connection: No route to host', or nothing for a quarter of an hour.
TEST(Link, ThatGoesDownIsALossOnBothSides) {
  for (const RankPart part : {exchange_messages, wait_idly}) {
    const auto start = Clock::now();
    const std::string text = text_of_child(
        [part] { return messages_of_ranks(part, [] { run_ip("link set near down"); }); });
    if (text.starts_with("skipped: ")) GTEST_SKIP() << text;
    // The kernel notices, or the rank itself, which hears nothing any more: who is first.
    EXPECT_THAT(text, testing::MatchesRegex("rank 1 is lost: (its connection closed|it was silent "
                                            "for 7500 ms)\nrank 0 is lost: (its connection "
                                            "closed|it was silent for 7500 ms)\n"));
    EXPECT_LT(Clock::now() - start, kNoticed + kMachine);
    RecordProperty("noticed_ms", static_cast<int>((Clock::now() - start) / 1ms));
  }
}

// To a tenth of what it was, in one direction.
TEST(Link, ThatBecomesSlowIsNoLoss) {
  const auto start = Clock::now();
  const std::string text = text_of_child([] {
    const auto limit = [](const std::string& rate) {
      run("tc qdisc replace dev near root tbf burst 65536 latency 50ms rate " + rate);
    };
    return messages_of_ranks(
        exchange_ten_messages, [&] { limit("20mbit"); }, [&] { limit("200mbit"); });
  });
  if (text.starts_with("skipped: ")) GTEST_SKIP() << text;
  EXPECT_EQ(text, "ten messages\nten messages\n");
  EXPECT_GT(Clock::now() - start, 2s);  // six MiB at 2.5 MB/s
}

// A debugger, or a machine that swaps: its kernel answers for it.
TEST(Link, AProcessThatIsStoppedFor5SecondsIsNotLost) {
  RankProcesses processes(2, [](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint =
        connect_tcp_world({.store = store, .rank = rank, .world_size = 2, .shares_memory = false});
    const std::vector<std::byte> message(16 << 20);
    std::vector<std::byte> received;
    const auto end = Clock::now() + 8s;
    for (bool is_last = false; !is_last;) {
      is_last = Clock::now() > end;  // rank 0 decides, by the size of what it sends
      const std::size_t size = is_last ? 1 : message.size();
      const WorkPtr recv = endpoint->recv(1 - rank, 1, into(received));
      const WorkPtr send =
          endpoint->send(1 - rank, 1, std::span(message).first(rank == 0 ? size : 9));
      for (const WorkPtr& work : {recv, send}) {
        if (!work->wait_for(20s)) throw Error(ErrorKind::kTimeout, "not done");
      }
      if (rank == 1) is_last = received.size() == 1;
      ready();
    }
    endpoint->shutdown(20s);
    store.shutdown();
  });
  const TestStore server;
  processes.meet_at(server.address());
  ASSERT_EQ(processes.line_from(0), "ready");
  ASSERT_EQ(processes.line_from(1), "ready");
  ASSERT_EQ(::kill(processes.process(1), SIGSTOP), 0);
  std::this_thread::sleep_for(5s);
  ASSERT_EQ(::kill(processes.process(1), SIGCONT), 0);
  for (const int rank : {0, 1}) {
    std::string line;
    do {
      line = processes.line_from(rank);
    } while (line == "ready");
    EXPECT_EQ(line, "ended well");
  }
}

}  // namespace
}  // namespace trireme::transport::test
