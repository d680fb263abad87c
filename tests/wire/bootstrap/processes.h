#pragma once

// Ranks of a world as processes of a test, one of which is killed.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/store.h"

namespace trireme::transport::test {

/// What a child does: `rank`, where the store is, and what to call when it has come to where one of
/// them is to be killed. What it throws is reported.
using RankBody = std::function<void(int rank, const Address& store, const std::function<void()>&)>;

/// Forks ranks; must be made before the test has threads. Ends those that are left.
class RankProcesses {
 public:
  RankProcesses(int num_ranks, const RankBody& body) : ranks_(num_ranks) {
    for (int rank = 0; rank < num_ranks; ++rank) start(rank, body);
  }

  ~RankProcesses() {
    for (const Rank& rank : ranks_) {
      if (rank.process > 1) ::kill(rank.process, SIGKILL);
      if (rank.process > 1) ::waitpid(rank.process, nullptr, 0);
      ::close(rank.orders);
      ::close(rank.report);
    }
  }

  /// Lets them start, with the store there.
  void meet_at(const Address& store) {
    const std::string text = to_text(store) + "\n";
    for (const Rank& rank : ranks_) {
      ASSERT_EQ(::write(rank.orders, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
  }

  /// One line from the child: `ready`, or the error that ended it, or nothing at its end. A test
  /// failure after 20 s.
  std::string line_from(int rank) {
    std::string line;
    char letter = 0;
    pollfd entry{.fd = ranks_[rank].report, .events = POLLIN, .revents = 0};
    while (true) {
      if (::poll(&entry, 1, 20'000) <= 0) {
        ADD_FAILURE() << "rank " << rank << " hangs after '" << line << "'";
        return line;
      }
      if (::read(entry.fd, &letter, 1) <= 0 || letter == '\n') return line;
      line += letter;
    }
  }

  pid_t process(int rank) const { return ranks_[rank].process; }

  void kill(int rank) {
    ASSERT_GT(ranks_[rank].process, 1);
    ASSERT_EQ(::kill(ranks_[rank].process, SIGKILL), 0);
    ASSERT_EQ(::waitpid(ranks_[rank].process, nullptr, 0), ranks_[rank].process);
    ranks_[rank].process = 0;
  }

 private:
  struct Rank {
    pid_t process = 0;
    int orders = -1;  ///< To the child.
    int report = -1;  ///< From the child.
  };

  void start(int rank, const RankBody& body) {
    std::array<int, 2> orders{};
    std::array<int, 2> report{};
    ASSERT_EQ(::pipe(orders.data()), 0);
    ASSERT_EQ(::pipe(report.data()), 0);
    std::fflush(nullptr);  // or the child has it too
    const pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      ::close(orders[1]);
      ::close(report[0]);
      run_child(rank, body, orders[0], report[1]);
    }
    ::close(orders[0]);
    ::close(report[1]);
    ranks_[rank] = {process, orders[1], report[0]};
  }

  [[noreturn]] static void run_child(int rank, const RankBody& body, int orders, int report) {
    const auto say = [report](std::string line) {
      line += "\n";
      [[maybe_unused]] const auto written = ::write(report, line.data(), line.size());
    };
    std::string store;
    char letter = 0;
    while (::read(orders, &letter, 1) == 1 && letter != '\n') store += letter;
    try {
      body(rank, parse_address(store), [&] { say("ready"); });
      say("ended well");
    } catch (const std::exception& error) {
      say(error.what());
    }
    ::_exit(0);  // not the test program's own end
  }

  std::vector<Rank> ranks_;
};

[[noreturn]] inline void wait_to_be_killed() {
  for (;;) ::pause();
}

/// Rank 2 of four is killed `delay` after all of them have said `ready`: the others end within 2 s,
/// with an error that names it.
inline void expect_rank_2_named(const RankBody& body, std::chrono::milliseconds delay = {}) {
  constexpr int kRanks = 4;
  constexpr int kVictim = 2;
  RankProcesses processes(kRanks, body);
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  std::this_thread::sleep_for(delay);
  const auto start = std::chrono::steady_clock::now();
  processes.kill(kVictim);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kVictim) continue;
    const std::string line = processes.line_from(rank);
    EXPECT_EQ(line.substr(0, 57), "peer lost: rank 2 is lost: its connection closed (rank " +
                                      std::to_string(rank) + ",");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace trireme::transport::test
