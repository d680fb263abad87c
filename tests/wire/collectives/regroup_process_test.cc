// Real processes, of which some die by kill -9, and the others go on together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "tests/wire/bootstrap/stores.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/elastic_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::Address;
using transport::ElasticWorld;
using transport::test::RankProcesses;
using transport::test::TestStore;
using transport::test::wait_to_be_killed;
using Clock = std::chrono::steady_clock;
using Ready = std::function<void()>;

constexpr int kWorldSize = 4;

class RegroupTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Transports, RegroupTest, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "shm" : "tcp"; });

ElasticWorld connect(int rank, const Address& store, bool shares_memory) {
  return ElasticWorld({.store = store, .token = transport::Token::for_tests()},
                      {.rank = rank,
                       .world_size = kWorldSize,
                       .host = {},
                       .on_abandon = nullptr,
                       .shares_memory = shares_memory});
}

std::vector<int> all_of(const ElasticWorld& world) {
  std::vector<int> ranks(world.world_size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// The sum over the first ranks of those that are left; throws where it is something else.
void check_sum(ElasticWorld& world, std::size_t count) {
  Group group(world.endpoint(), all_of(world),
              {.name = "sums of " + std::to_string(count), .id = count, .deadline = 20s});
  std::vector<float> data(count, static_cast<float>(world.origins()[world.rank()] + 1));
  group.all_reduce(std::span(data))->wait_for(20s);
  float expected = 0;
  for (const int origin : world.origins()) expected += static_cast<float>(origin + 1);
  for (const float x : data) {
    if (x != expected) throw Error(ErrorKind::kCorruptData, "a wrong sum");
  }
}

/// Sums until the world fails.
void sum_until_failure(ElasticWorld& world, const Ready& ready) {
  Group group(world.endpoint(), all_of(world), {.name = "data", .id = 1, .deadline = 20s});
  std::vector<float> data(300'000, 1.0F);
  try {
    for (int round = 0;; ++round) {
      group.all_reduce(std::span(data))->wait_for(20s);
      if (round == 2) ready();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
  }
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// Open descriptors and threads of this process.
struct Held {
  std::size_t descriptors = entries_of("/proc/self/fd");
  std::size_t threads = entries_of("/proc/self/task");
};

void expect_as_before(const Held& before) {
  Held now;
  // The kernel may show a thread for a moment after it was joined.
  for (const auto limit = Clock::now() + 2s;
       now.threads > before.threads && Clock::now() < limit;) {
    std::this_thread::sleep_for(1ms);
    now = {};
  }
  if (now.descriptors == before.descriptors && now.threads == before.threads) return;
  throw Error(ErrorKind::kResourceExhausted,
              "left behind: " + std::to_string(now.descriptors) + " descriptors of " +
                  std::to_string(before.descriptors) + ", " + std::to_string(now.threads) +
                  " threads of " + std::to_string(before.threads));
}

/// Victims die one after another, in the middle of sums; each time the others go on.
void expect_survival(bool shares_memory, const std::vector<int>& victims) {
  RankProcesses processes(kWorldSize, [&](int rank, const Address& store, const Ready& ready) {
    std::thread([] {}).join();  // with the first thread come those of the thread sanitizer
    const Held before;
    {
      ElasticWorld world = connect(rank, store, shares_memory);
      for (std::size_t i = 0; i < victims.size(); ++i) {
        sum_until_failure(world, ready);
        world.regroup({.window = 20s});
        check_sum(world, 100'000);
        check_sum(world, 10);
        ready();
      }
      world.shutdown();
    }
    expect_as_before(before);
  });
  const TestStore server;
  processes.meet_at(server.address());
  std::vector<int> left = {0, 1, 2, 3};
  for (const int victim : victims) {
    for (const int rank : left) ASSERT_EQ(processes.line_from(rank), "ready");
    const auto start = Clock::now();
    processes.kill(victim);
    std::erase(left, victim);
    for (const int rank : left) ASSERT_EQ(processes.line_from(rank), "ready");
    EXPECT_LT(Clock::now() - start, 2s);
  }
  for (const int rank : left) EXPECT_EQ(processes.line_from(rank), "ended well");
}

TEST_P(RegroupTest, ThreeGoOnAfterALoss) { expect_survival(GetParam(), {2}); }

TEST_P(RegroupTest, TwiceInARow) { expect_survival(GetParam(), {0, 3}); }

TEST_P(RegroupTest, AfterAnAbortAllGoOn) {
  RankProcesses processes(kWorldSize, [&](int rank, const Address& store, const Ready& ready) {
    ElasticWorld world = connect(rank, store, GetParam());
    {
      Group group(world.endpoint(), all_of(world), {.name = "data", .id = 1, .deadline = 20s});
      try {
        group.barrier()->wait_for(20s);
        if (rank == 1) world.abort("the loss is no number");
        group.barrier()->wait_for(20s);
      } catch (const Error& error) {
        if (error.message() != "rank 1 has ended the world: the loss is no number") throw;
        if (error.kind() != ErrorKind::kCancelled || error.context().peer != 1) throw;
        ready();
      }
    }
    world.regroup();
    check_sum(world, 1000);
    world.shutdown();
  });
  const TestStore server;
  const auto start = Clock::now();
  processes.meet_at(server.address());
  for (int rank = 0; rank < kWorldSize; ++rank) EXPECT_EQ(processes.line_from(rank), "ready");
  for (int rank = 0; rank < kWorldSize; ++rank) EXPECT_EQ(processes.line_from(rank), "ended well");
  EXPECT_LT(Clock::now() - start, 2s);
}

TEST(Regroup, AStragglerIsToldThatItIsLate) {
  RankProcesses processes(kWorldSize, [](int rank, const Address& store, const Ready& ready) {
    ElasticWorld world = connect(rank, store, true);
    ready();
    if (rank == 2) wait_to_be_killed();
    transport::Endpoint& endpoint = world.endpoint();
    while (!endpoint.failure()) std::this_thread::sleep_for(1ms);
    if (rank == 1) std::this_thread::sleep_for(800ms);
    world.regroup({.window = 200ms});
    check_sum(world, 1000);
    world.shutdown();
  });
  const TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < kWorldSize; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  processes.kill(2);
  EXPECT_EQ(processes.line_from(0), "ended well");
  EXPECT_EQ(processes.line_from(3), "ended well");
  EXPECT_THAT(processes.line_from(1),
              HasSubstr("timeout: world generation 1 has begun without rank 1: it called in too "
                        "late; its members were ranks 0, 3."));
}

// Rank 0 serves the store and dies: no way on, and it is said why.
TEST(Regroup, WithoutTheStoreThereIsNoWayOn) {
  RankProcesses processes(kWorldSize, [](int rank, const Address& store, const Ready& ready) {
    transport::Meeting meeting{.store = store, .token = transport::Token::for_tests()};
    if (rank == 0) meeting.server = std::make_unique<TestStore>(store);
    ElasticWorld world(std::move(meeting), {.rank = rank, .world_size = kWorldSize});
    sum_until_failure(world, ready);
    world.regroup();
  });
  Address store;
  {
    const TestStore free_port;
    store = free_port.address();
  }
  processes.meet_at(store);
  for (int rank = 0; rank < kWorldSize; ++rank) ASSERT_EQ(processes.line_from(rank), "ready");
  const auto start = Clock::now();
  processes.kill(0);
  for (int rank = 1; rank < kWorldSize; ++rank) {
    const std::string line = processes.line_from(rank);
    EXPECT_THAT(line, HasSubstr("this world cannot regroup: the store at"));
    EXPECT_THAT(line, HasSubstr("serve it from a process that is none"));
  }
  EXPECT_LT(Clock::now() - start, 2s);
}

}  // namespace
}  // namespace trireme::collectives::test
