// Real processes, over tcp and over shared memory, one of which is killed, stopped or out of memory
// in the middle of operations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::test::RankProcesses;
using Clock = std::chrono::steady_clock;
using Ready = std::function<void()>;

constexpr int kRanks = 4;

/// A test whose ranks share memory, or do not.
class Faults : public testing::TestWithParam<bool> {
 protected:
  /// What a rank does with a group of all four; reports the group's errors only.
  static transport::test::RankBody with_group(std::function<void(Group&, const Ready&)> act,
                                              GroupOptions options = {.name = "data", .id = 1}) {
    return [act = std::move(act), options, shares_memory = GetParam()](
               int rank, const transport::Address& address, const Ready& ready) {
      transport::test::TestClient store(address, rank);
      const auto endpoint = transport::connect_tcp_world(
          {.store = store, .rank = rank, .world_size = kRanks, .shares_memory = shares_memory});
      Group group(*endpoint, {0, 1, 2, 3}, options);
      act(group, ready);
    };
  }
};

INSTANTIATE_TEST_SUITE_P(Memory, Faults, testing::Bool(),
                         [](const auto& memory) { return memory.param ? "shared" : "apart"; });

/// The group's thread sums, sends and receives pieces of 16 MiB: a different one at each moment.
TEST_P(Faults, KillAtAnyMomentOfASum) {
  for (const auto delay : {0ms, 3ms, 8ms, 21ms}) {
    transport::test::expect_rank_2_named(
        with_group([](Group& group, const Ready& ready) {
          std::vector<float> data(4'000'000);
          for (int round = 0;; ++round) {
            transport::test::wait_for(group.all_reduce(std::span(data)));
            if (round == 0) ready();
          }
        }),
        delay);
  }
}

TEST_P(Faults, KillAmongSmallOperations) {
  transport::test::expect_rank_2_named(
      with_group([](Group& group, const Ready& ready) {
        std::vector<float> data(4);
        for (int round = 0;; ++round) {
          transport::test::wait_for(group.all_reduce(std::span(data)));
          transport::test::wait_for(group.barrier());
          if (round == 0) ready();
        }
      }),
      5ms);
}

TEST_P(Faults, KillWhileTheOthersWaitInABarrier) {
  transport::test::expect_rank_2_named(with_group([](Group& group, const Ready& ready) {
    ready();
    if (group.group_rank() == 2) transport::test::wait_to_be_killed();
    transport::test::wait_for(group.barrier());
  }));
}

// The others must not wait for longer than the deadline, nor call it dead before.
TEST_P(Faults, AStoppedRankIsNamedAtTheDeadline) {
  RankProcesses processes(kRanks,
                          with_group(
                              [](Group& group, const Ready& ready) {
                                std::vector<float> data(1000);
                                transport::test::wait_for(group.barrier());
                                ready();
                                while (true) {
                                  transport::test::wait_for(group.all_reduce(std::span(data)));
                                }
                              },
                              {.name = "data", .id = 1, .deadline = 1s}));
  const transport::test::TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const auto start = Clock::now();
  ASSERT_EQ(::kill(processes.process(2), SIGSTOP), 0);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(processes.line_from(rank), HasSubstr("waited 1000 ms for rank 2"));
  }
  EXPECT_GT(Clock::now() - start, 900ms);
  EXPECT_LT(Clock::now() - start, 3s);
  ASSERT_EQ(::kill(processes.process(2), SIGCONT), 0);
  EXPECT_THAT(processes.line_from(2), HasSubstr("waited 1000 ms for rank 2"));
}

// Rank 0 makes the memory that the others are to map.
TEST_P(Faults, ARankWithoutMemoryToShareIsNamed) {
  if (!GetParam()) GTEST_SKIP() << "these ranks share none";
  RankProcesses processes(kRanks, with_group([](Group& group, const Ready& ready) {
                            transport::test::wait_for(group.barrier());
                            if (group.group_rank() == 0) {
                              std::signal(SIGXFSZ, SIG_IGN);
                              const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
                              ::setrlimit(RLIMIT_FSIZE, &limit);
                            }
                            ready();
                            group.allocate(16 << 20);
                          }));
  const transport::test::TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const auto start = Clock::now();
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string line = processes.line_from(rank);
    EXPECT_THAT(line, HasSubstr("cannot make 67108864 bytes of shared memory"));
    EXPECT_THAT(line, HasSubstr("rank 0"));
  }
  EXPECT_LT(Clock::now() - start, 2s);
}

}  // namespace
}  // namespace trireme::collectives::test
