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
#include <vector>

#include "tests/wire/transport/ranks.h"
#include "trireme/wire/transport/store.h"
#include "trireme/wire/transport/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kNoticed = 40s;  // 25 s, and what the kernel's timers add

/// Why the test cannot be run on this machine.
struct NotPermitted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void run_ip(const std::string& text) {
  std::istringstream stream("ip " + text);
  std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t process = -1;
  int status = -1;
  const int failed = ::posix_spawnp(&process, "ip", nullptr, nullptr, pointers.data(), environ);
  if (failed == 0) ::waitpid(process, &status, 0);
  if (status != 0) throw NotPermitted("'ip " + text + "' fails");
}

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
  StoreClient store(address, rank);
  const auto endpoint = connect_tcp_world({.store = store, .rank = rank, .world_size = 2});
  const std::vector<std::byte> message(4 << 20);
  std::vector<std::byte> received;
  try {
    for (int round = 0;; ++round) {
      const WorkPtr recv = endpoint->recv(1 - rank, 1, into(received));
      const WorkPtr send = endpoint->send(1 - rank, 1, message);
      for (const WorkPtr& work : {recv, send}) {
        if (!work->wait_for(kNoticed)) return "nothing was noticed";
      }
      if (round == 3) ready();
    }
  } catch (const Error& error) {
    return error.message();
  }
}

/// The child's part: what both ranks say, a line each.
std::string messages_of_ranks() {
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
    return exchange_messages(store_address.get_future().get(), 1, [] {});
  });
  is_linked.get_future().get();
  run_ip("address add 10.77.0.1/24 dev near");
  run_ip("link set near up");
  const StoreServer server({"10.77.0.1", 0});
  store_address.set_value(server.address());
  auto near = std::async(std::launch::async, [&] {
    return exchange_messages(server.address(), 0, [&] { is_moving.set_value(); });
  });
  is_moving.get_future().get();
  run_ip("link set near down");
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
  const std::string text = text_of_child(messages_of_ranks);
  if (text.starts_with("skipped: ")) GTEST_SKIP() << text;
  EXPECT_EQ(text,
            "rank 1 is lost: its connection closed\n"
            "rank 0 is lost: its connection closed\n");
}

}  // namespace
}  // namespace trireme::transport::test
