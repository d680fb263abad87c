// Everything but sums, while all is well.

#include "trireme/wire/collectives/group.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <list>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "tests/wire/collectives/group_world.h"
#include "trireme/wire/collectives/host/arena.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using transport::test::expect_no_errors;
using transport::test::random_bytes;
using transport::test::run_ranks;
using transport::test::wait_for;
using Bytes = std::vector<std::byte>;

class GroupTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, GroupTest, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

Bytes concatenated(int num_ranks, std::size_t bytes) {
  Bytes all;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const Bytes part = random_bytes(rank, bytes);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST_P(GroupTest, AllGatherCollectsInOrder) {
  for (const int num_ranks : {1, 2, 5}) {
    expect_no_errors(run_group(GetParam(), num_ranks, [&](Group& group) {
      for (const std::size_t bytes : {0, 1, 100, 30'000}) {
        const Bytes mine = random_bytes(group.group_rank(), bytes);
        Bytes all(bytes * num_ranks);
        wait_for(group.all_gather(mine, all));
        EXPECT_EQ(all, concatenated(num_ranks, bytes));
      }
    }));
  }
}

TEST_P(GroupTest, AllGatherMayBeInPlace) {
  expect_no_errors(run_group(GetParam(), 3, [&](Group& group) {
    Bytes all(3 * 1000);
    const std::span<std::byte> mine = std::span(all).subspan(group.group_rank() * 1000, 1000);
    const Bytes bytes = random_bytes(group.group_rank(), 1000);
    std::copy(bytes.begin(), bytes.end(), mine.begin());
    wait_for(group.all_gather(mine, all));
    EXPECT_EQ(all, concatenated(3, 1000));
  }));
}

TEST_P(GroupTest, BroadcastFromEveryRoot) {
  for (const int num_ranks : {1, 2, 3, 4}) {
    expect_no_errors(run_group(GetParam(), num_ranks, [&](Group& group) {
      for (int root = 0; root < num_ranks; ++root) {
        for (const std::size_t bytes : {0, 1, 17, 50'000}) {
          const Bytes sent = random_bytes(root * 1000 + bytes, bytes);
          Bytes data = group.group_rank() == root ? sent : Bytes(bytes);
          wait_for(group.broadcast(data, root));
          EXPECT_EQ(data, sent) << bytes << " bytes from " << root << " of " << num_ranks;
        }
      }
    }));
  }
}

TEST_P(GroupTest, NobodyPassesABarrierBeforeAllHaveArrived) {
  for (const int num_ranks : {1, 2, 7}) {
    std::atomic<int> num_arrived = 0;
    expect_no_errors(run_group(GetParam(), num_ranks, [&](Group& group) {
      for (int round = 1; round <= 5; ++round) {
        ++num_arrived;
        wait_for(group.barrier());
        EXPECT_GE(num_arrived, round * num_ranks);
        wait_for(group.barrier());
      }
    }));
  }
}

TEST_P(GroupTest, OperationsMayBeQueued) {
  expect_no_errors(run_group(GetParam(), 3, [&](Group& group) {
    std::vector<std::vector<float>> data(50);
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i].assign(i * 7, static_cast<float>(group.group_rank() + 1));
      works.push_back(group.all_reduce(std::span(data[i])));
      if (i % 10 == 0) works.push_back(group.barrier());
    }
    for (const WorkPtr& work : works) wait_for(work);
    for (std::size_t i = 0; i < data.size(); ++i) {
      EXPECT_EQ(data[i], std::vector<float>(i * 7, 6.0F));
    }
  }));
}

// A world of six: all ranks, odd and even ones, each rank backwards, at the same time.
TEST_P(GroupTest, GroupsDoNotMix) {
  Endpoints endpoints = make_world(GetParam(), 6);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    const int parity = endpoint.rank() % 2;
    Group all(endpoint, first_ranks(6), {.name = "all", .id = 0});
    Group half(endpoint, {parity, 2 + parity, 4 + parity}, {.name = "half", .id = 1});
    Group backwards(endpoint, {5, 4, 3, 2, 1, 0}, {.name = "backwards", .id = 2});
    EXPECT_EQ(backwards.group_rank(), 5 - endpoint.rank());
    for (int round = 0; round < 10; ++round) {
      std::vector<double> a(100, endpoint.rank());
      std::vector<double> b(100, endpoint.rank());
      const std::byte mine{static_cast<unsigned char>(endpoint.rank())};
      Bytes c(6);
      const WorkPtr works[] = {backwards.all_gather(std::span(&mine, 1), c),
                               half.all_reduce(std::span(b)), all.all_reduce(std::span(a))};
      for (const WorkPtr& work : works) wait_for(work);
      EXPECT_EQ(a, std::vector<double>(100, 15));
      EXPECT_EQ(b, std::vector<double>(100, 6 + 3 * parity));
      for (int i = 0; i < 6; ++i) EXPECT_EQ(c[i], std::byte(5 - i));
    }
  }));
}

TEST_P(GroupTest, TakesAnyMixOfOperations) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kRanks = 4;
  expect_no_errors(run_group(GetParam(), kRanks, [&](Group& group) {
    std::mt19937_64 random(seed);  // the same on all ranks
    for (int i = 0; i < 60; ++i) {
      const std::size_t count = random() % 3 == 0 ? random() % 5 : random() % 5000;
      const int root = static_cast<int>(random() % kRanks);
      const auto rank = static_cast<double>(group.group_rank());
      std::vector<double> data(count, rank);
      Bytes bytes = random_bytes(root == group.group_rank() ? i : 0, count);
      Bytes all(count * kRanks);
      switch (random() % 4) {
        case 0:
          wait_for(group.all_reduce(std::span(data)));
          EXPECT_EQ(data, std::vector<double>(count, 6));
          break;
        case 1:
          wait_for(group.broadcast(bytes, root));
          EXPECT_EQ(bytes, random_bytes(i, count));
          break;
        case 2:
          wait_for(group.all_gather(random_bytes(group.group_rank(), count), all));
          EXPECT_EQ(all, concatenated(kRanks, count));
          break;
        default:
          wait_for(group.barrier());
      }
    }
  }));
}

/// Bytes that there are of the memory which groups called `name` share, for each descriptor that
/// this process has of it.
std::vector<std::size_t> shared_bytes_of(const std::string& name) {
  std::vector<std::size_t> result;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;  // by another thread
    const std::string file = std::filesystem::read_symlink(entry.path(), closed).string();
    struct stat status{};
    if (file.find("memfd:trireme " + name + " ") == std::string::npos) continue;
    if (::stat(entry.path().c_str(), &status) != 0) continue;
    result.push_back(static_cast<std::size_t>(status.st_blocks) * 512);
  }
  return result;
}

// Each group handed its memory over when it was made: of many that were not used, the system
// refused to carry more descriptors.
TEST(GroupMemory, IsNotHandedOverBeforeTheFirstOperation) {
  Endpoints endpoints = make_world(Backend::kLocal, 2);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    std::list<Group> groups;
    for (std::uint64_t id = 1; id <= 40; ++id) {
      groups.emplace_back(
          endpoint, first_ranks(2),
          GroupOptions{.name = id < 40 ? "unused" : "used", .id = id, .deadline = 20s});
    }
    wait_for(groups.back().barrier());
    EXPECT_EQ(shared_bytes_of("unused").size(), 0U);
    EXPECT_GE(shared_bytes_of("used").size(), 1U);
  }));
}

// Rank 0 took all pages: on its own NUMA node and against its own limit.
TEST(GroupMemory, EachRankProvidesItsOwnPart) {
  std::promise<void> looked;
  expect_no_errors(run_group(Backend::kLocal, 2, [&looked](Group& group) {
    if (group.group_rank() != 0) {
      EXPECT_EQ(looked.get_future().wait_for(20s), std::future_status::ready);
      return wait_for(group.barrier());
    }
    const WorkPtr barrier = group.barrier();
    EXPECT_FALSE(barrier->wait_for(1ms));
    EXPECT_EQ(shared_bytes_of("data"),
              std::vector<std::size_t>{Arena::bytes_for(2) - Arena::kStagingBytes});
    looked.set_value();
    wait_for(barrier);
    EXPECT_EQ(shared_bytes_of("data").at(0), Arena::bytes_for(2));
  }));
}

TEST(Chunk, NearlyEqualAndAligned) {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 100, 1000, 4096, 100'003}) {
    for (int size = 1; size <= 16; ++size) {
      std::int64_t end = 0;
      for (int i = 0; i < size; ++i) {
        const Chunk chunk = chunk_of(count, size, i);
        EXPECT_EQ(chunk.begin, end);
        EXPECT_TRUE(chunk.end % 16 == 0 || chunk.end == count);
        EXPECT_LE(chunk.size(), (count / 16 / size + 1) * 16);
        end = chunk.end;
      }
      EXPECT_EQ(end, count);
    }
  }
  EXPECT_EQ(chunk_of(100, 3, 1), (Chunk{32, 64}));
  EXPECT_EQ(chunk_of(std::int64_t{1} << 62, 3, 2).end, std::int64_t{1} << 62);
  EXPECT_THROW(chunk_of(10, 2, 2), Error);
  EXPECT_THROW(chunk_of(10, 0, 0), Error);
  EXPECT_THROW(chunk_of(-1, 2, 0), Error);
}

}  // namespace
}  // namespace trireme::collectives::test
