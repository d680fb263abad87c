// Very many small operations, and worlds that lose a rank at any moment: every result is right or
// every survivor has a clear error, and nothing grows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using transport::test::expect_no_errors;
using transport::test::make_world;
using transport::test::run_ranks;
using transport::test::wait_for;

/// What this process holds.
struct Footprint {
  long resident_pages = 0;
  long descriptors = 0;
  long threads = 0;
};

Footprint footprint() {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  Footprint now{.descriptors = count("/proc/self/fd"), .threads = count("/proc/self/task")};
  long all_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> now.resident_pages;
  return now;
}

/// One operation, with a result that is known; the same on all ranks.
void run_one(Group& group, std::mt19937_64& random, int round) {
  const int size = group.size();
  const std::size_t count = 1 + random() % 16;
  const int root = static_cast<int>(random() % static_cast<std::uint64_t>(size));
  std::vector<float> data(count, static_cast<float>(group.group_rank() + round % 100));
  const int of_ranks = size * (size - 1) / 2;
  const auto sum = static_cast<float>(of_ranks + size * (round % 100));
  std::vector<float> all(count * static_cast<std::size_t>(size));
  switch (random() % 4) {
    case 0:
    case 1:
      wait_for(group.all_reduce(std::span(data)));
      ASSERT_EQ(data, std::vector<float>(count, sum));
      return;
    case 2:
      wait_for(group.broadcast(std::as_writable_bytes(std::span(data)), root));
      ASSERT_EQ(data, std::vector<float>(count, static_cast<float>(root + round % 100)));
      return;
    default:
      wait_for(
          group.all_gather(std::as_bytes(std::span(data)), std::as_writable_bytes(std::span(all))));
      ASSERT_EQ(all.back(), static_cast<float>(size - 1 + round % 100));
  }
}

/// Small operations of three ranks; what is held must not grow after the first tenth.
void soak(Backend backend, int num_rounds) {
  Footprint before;
  expect_no_errors(run_group(backend, 3, [&](Group& group) {
    std::mt19937_64 random(7);
    for (int round = 0; round < num_rounds; ++round) {
      if (round == num_rounds / 10 && group.group_rank() == 0) before = footprint();
      run_one(group, random, round);
      if (testing::Test::HasFatalFailure()) return;
    }
    if (group.group_rank() > 0) return wait_for(group.barrier());
    const Footprint after = footprint();
    wait_for(group.barrier());
    constexpr long kPagesOfSlack = 1024;  // 4 MiB: what an allocator keeps varies
    EXPECT_LT(after.resident_pages, before.resident_pages + kPagesOfSlack);
    EXPECT_EQ(after.descriptors, before.descriptors);
    EXPECT_EQ(after.threads, before.threads);
  }));
}

TEST(Soak, AMillionOverSim) { soak(Backend::kSim, 1'000'000); }
TEST(Soak, TenThousandOverANetworkThatDropsDelaysAndReorders) { soak(Backend::kSimDelays, 10'000); }
TEST(Soak, AHundredThousandOverSharedMemory) { soak(Backend::kLocal, 100'000); }
TEST(Soak, AHundredThousandOverTcp) { soak(Backend::kTcp, 100'000); }

/// A world of three, one rank of which goes away without a word after `last` operations.
void lose_a_rank(Backend backend, std::uint64_t seed) {
  std::mt19937_64 choice(seed);
  const int victim = static_cast<int>(choice() % 3);
  const int last = static_cast<int>(choice() % 30);
  SCOPED_TRACE("seed " + std::to_string(seed) + ", rank " + std::to_string(victim) + " after " +
               std::to_string(last));
  Endpoints endpoints = make_world(backend, 3);
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_ranks(endpoints, [&](Endpoint& endpoint) {
    const int rank = endpoint.rank();
    {
      Group group(endpoint, first_ranks(3), {.name = "data", .id = 1});
      std::mt19937_64 random(seed);
      for (int round = 0; rank != victim || round < last; ++round) run_one(group, random, round);
    }
    endpoints[rank].reset();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) {
      EXPECT_FALSE(errors[rank].has_value()) << errors[rank]->what();
      continue;
    }
    ASSERT_TRUE(errors[rank].has_value());
    EXPECT_EQ(errors[rank]->message(),
              "rank " + std::to_string(victim) + " is lost: its connection closed");
  }
}

class SoakLoss : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, SoakLoss, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(SoakLoss, AtAnyMoment) {
  const Footprint before = footprint();
  for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) lose_a_rank(GetParam(), seed);
  const Footprint after = footprint();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
}

}  // namespace
}  // namespace trireme::collectives::test
