// A rank whose process is killed while a child that it has forked lives on: the others are told, as
// soon as if there were no child.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kForkRanks = 3;
constexpr int kForker = 1;
constexpr std::chrono::milliseconds kHeard = 2s;  // after that all have been heard

enum class Fork : std::uint8_t { kOfLibrary, kOfKernel };  // which runs no handlers

/// It outlives `within`, in which the others must have been told, and this test: who reads what that
/// prints does not wait for it.
void leave_a_child(Fork how, std::chrono::milliseconds within) {
  const long process =
      how == Fork::kOfLibrary ? ::fork() : ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (process != 0) return;
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  std::this_thread::sleep_for(within + 2s);
  ::_exit(0);
}

/// The others wait for each other when rank 1 is killed; what they say of it.
std::vector<std::string> lines_after_kill(Fork how, bool shares_memory,
                                          std::chrono::milliseconds within) {
  RankProcesses processes(kForkRanks, [=](int rank, const Address& address, const auto& ready) {
    TestClient store(address, rank);
    const auto endpoint = connect_tcp_world(
        {.store = store, .rank = rank, .world_size = kForkRanks, .shares_memory = shares_memory});
    if (rank == kForker) leave_a_child(how, within + kHeard);
    if (how == Fork::kOfKernel) std::this_thread::sleep_for(kHeard);
    std::vector<std::byte> memory;
    const WorkPtr work = endpoint->recv((rank + 2) % kForkRanks, 1, into(memory));
    ready();
    if (rank == kForker) wait_to_be_killed();
    work->wait_for(60s);
  });
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kForkRanks; ++rank) EXPECT_EQ(processes.line_from(rank), "ready");
  const auto start = std::chrono::steady_clock::now();
  processes.kill(kForker);
  std::vector<std::string> lines;
  for (const int rank : {0, 2}) lines.push_back(processes.line_from(rank));
  EXPECT_LT(std::chrono::steady_clock::now() - start, within);
  return lines;
}

TEST(ForkedChild, DoesNotKeepConnections) {
  for (const bool shares_memory : {true, false}) {
    for (const std::string& line : lines_after_kill(Fork::kOfLibrary, shares_memory, 2s)) {
      EXPECT_THAT(line, HasSubstr("rank 1 is lost: its connection closed"));
    }
  }
}

TEST(ForkedChild, ThatKeepsConnectionsHidesNoLossOnTheHost) {
  for (const std::string& line : lines_after_kill(Fork::kOfKernel, true, 2s)) {
    EXPECT_THAT(line, HasSubstr("rank 1 is lost: its process has ended"));
  }
}

TEST(ForkedChild, ThatKeepsConnectionsHidesNoLossBetweenHosts) {
  for (const std::string& line : lines_after_kill(Fork::kOfKernel, false, 10s)) {
    EXPECT_THAT(line, HasSubstr("rank 1 is lost: it was silent for 7500 ms"));
  }
}

}  // namespace
}  // namespace trireme::transport::test
