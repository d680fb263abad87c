#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <exception>
#include <random>
#include <thread>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/kernels/reference/combine.h"
#include "trireme/wire/collectives/host/host_rank.h"
#include "trireme/wire/transport/shm/shared_memory.h"

namespace trireme::collectives {
namespace {

using Bytes = std::vector<std::byte>;
using kernels::ReduceOp;
using kernels::Reduction;
using testing::HasSubstr;

/// Whoever waits longer than a test should last has failed.
HostRank::OnWait until_patience_ends() {
  return [calls = 0](const std::vector<int>& late) mutable {
    if (++calls < 200) return;
    throw Error(ErrorKind::kTimeout, "late: rank " + std::to_string(late.front()));
  };
}

/// An arena and its ranks, as threads.
class Host {
 public:
  explicit Host(int num_ranks)
      : memory_(transport::SharedMemory::create("arena", Arena::bytes_for(num_ranks))),
        arena_(memory_.bytes(), num_ranks) {}

  HostRank rank(int index, HostRank::OnWait on_wait = until_patience_ends()) const {
    return {arena_, index, transport::Patience::for_ranks(arena_.num_ranks()), std::move(on_wait)};
  }

  /// Once: runs `body` on each rank; the errors, by rank, empty where there was none.
  std::vector<std::string> run(const std::function<void(HostRank&)>& body) const {
    std::vector<std::string> errors(arena_.num_ranks());
    std::vector<std::thread> threads;
    for (int i = 0; i < arena_.num_ranks(); ++i) {
      threads.emplace_back([&, i] {
        HostRank mine = rank(i);
        try {
          body(mine);
        } catch (const std::exception& error) {
          errors[i] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

 private:
  transport::SharedMemory memory_;
  Arena arena_;
};

/// What a rank gives: small whole numbers of either sign as f32 bits would be too kind to sums.
Bytes numbers(const Reduction& reduction, std::int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Bytes bytes(static_cast<std::size_t>(count) * size_bytes(reduction.dtype));
  if (reduction.dtype == Dtype::kF32) {
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      const float x = std::ldexp(normal(random), static_cast<int>(random() % 20));
      std::memcpy(bytes.data() + i, &x, 4);
    }
  } else {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 64);
  }
  return bytes;
}

Bytes expected_of(const Reduction& reduction, std::int64_t count, int num_ranks, int seed) {
  std::vector<Bytes> given;
  std::vector<const std::byte*> sources;
  for (int i = 0; i < num_ranks; ++i) given.push_back(numbers(reduction, count, seed + i));
  for (const Bytes& bytes : given) sources.push_back(bytes.data());
  Bytes result(given[0].size());
  kernels::reference::combine(reduction, sources, result.data(), count);
  return result;
}

struct Case {
  Reduction reduction;
  std::int64_t count;
};

/// Below and above what fits a slot and a piece, and several pieces.
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const std::int64_t count : {0, 1, 5, 1023, 1024, 1025, 65'536, 65'537, 300'001}) {
    result.push_back({{}, count});
  }
  for (const Dtype dtype : {Dtype::kF64, Dtype::kBf16, Dtype::kF16, Dtype::kI64, Dtype::kBool}) {
    result.push_back({{dtype, ReduceOp::kSum}, 70'003});
    result.push_back({{dtype, ReduceOp::kMax}, 33});
  }
  result.push_back({{Dtype::kI32, ReduceOp::kXor}, 200'000});
  result.push_back({{Dtype::kF32, ReduceOp::kAverage}, 100'000});
  return result;
}

TEST(HostAllReduce, IsTheTreeOverRanks) {
  for (const int num_ranks : {1, 2, 3, 4, 5, 8}) {
    const Host host(num_ranks);
    std::atomic<int> num_wrong = 0;
    const auto errors = host.run([&](HostRank& rank) {
      int seed = 0;
      for (const auto& [reduction, count] : cases()) {
        seed += 100;
        Bytes data = numbers(reduction, count, seed + rank.rank());
        rank.all_reduce(reduction, data);
        if (data != expected_of(reduction, count, num_ranks, seed)) ++num_wrong;
        if (count % 2 == 1) rank.barrier();
      }
    });
    EXPECT_THAT(errors, testing::Each("")) << num_ranks << " ranks";
    EXPECT_EQ(num_wrong, 0) << num_ranks << " ranks";
  }
}

TEST(HostAllReduce, OverSharedBuffers) {
  for (const int num_ranks : {1, 2, 4, 6}) {
    for (const auto& [reduction, count] : cases()) {
      const Host host(num_ranks);
      std::vector<Bytes> given;
      for (int i = 0; i < num_ranks; ++i) given.push_back(numbers(reduction, count, 9 + i));
      const std::vector<std::span<std::byte>> buffers(given.begin(), given.end());
      const auto errors =
          host.run([&](HostRank& rank) { rank.all_reduce_shared(reduction, buffers); });
      EXPECT_THAT(errors, testing::Each(""));
      const Bytes expected = expected_of(reduction, count, num_ranks, 9);
      for (const Bytes& bytes : given) EXPECT_TRUE(bytes == expected) << count;
    }
  }
}

TEST(HostAllReduce, ManyInARowOfAnySize) {
  constexpr int kRanks = 3;
  const Host host(kRanks);
  std::atomic<int> num_wrong = 0;
  const auto errors = host.run([&](HostRank& rank) {
    std::mt19937 sizes(5), delays(rank.rank());
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t count = static_cast<std::int64_t>(1) << (sizes() % 18);
      std::vector<float> data(count, static_cast<float>(i + rank.rank()));
      if (delays() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      rank.all_reduce({}, std::as_writable_bytes(std::span(data)));
      const float expected = static_cast<float>(3 * i + 3);
      if (data.front() != expected || data.back() != expected) ++num_wrong;
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_EQ(num_wrong, 0);
}

TEST(HostAllReduce, DifferentCallsAreSaidOnAllRanks) {
  const auto errors_of = [](const std::function<void(HostRank&)>& body) {
    return Host(3).run(body);
  };
  const auto differ = [&](int rank_of_other, std::size_t count, std::size_t other_count,
                          const Reduction& other) {
    return errors_of([&, rank_of_other](HostRank& rank) {
      const bool is_other = rank.rank() == rank_of_other;
      Bytes data(4 * (is_other ? other_count : count));
      rank.all_reduce(is_other ? other : Reduction(), data);
    });
  };
  EXPECT_THAT(differ(1, 10, 11, {}),
              testing::Each(HasSubstr("rank 0 operation 0: all_reduce of 10 f32 among 3 ranks, "
                                      "rank 1 operation 0: all_reduce of 11 f32")));
  EXPECT_THAT(differ(2, 10, 10, {Dtype::kI32, ReduceOp::kSum}),
              testing::Each(HasSubstr("rank 2 operation 0: all_reduce of 10 i32")));
  EXPECT_THAT(differ(0, 10, 10, {Dtype::kF32, ReduceOp::kMax}),
              testing::Each(HasSubstr("all_reduce of 10 f32 by max")));
  EXPECT_THAT(differ(2, 100'000, 10, {}), testing::Each(HasSubstr("all_reduce of 10 f32")));
  EXPECT_THAT(errors_of([](HostRank& rank) {
                Bytes data(40);
                rank.rank() == 1 ? rank.barrier() : rank.all_reduce({}, data);
              }),
              testing::Each(HasSubstr("rank 1 operation 0: barrier among 3 ranks")));
}

TEST(HostAllReduce, WhoWaitsIsToldWhoIsLate) {
  const Host host(3);
  HostRank first = host.rank(0, [](const std::vector<int>& late) {
    EXPECT_EQ(late, (std::vector<int>{1, 2}));
    throw Error(ErrorKind::kTimeout, "enough");
  });
  Bytes data(4);
  EXPECT_THROW(first.all_reduce({}, data), Error);
}

// Ranks as processes, one of which ends between two operations.
TEST(HostAllReduce, OverProcessesOneOfWhichIsKilled) {
  const Host host(2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  std::vector<float> data(100'000, 1);
  const auto bytes = std::as_writable_bytes(std::span(data));
  if (child == 0) {
    HostRank second = host.rank(1);
    for (int i = 0; i < 100; ++i) second.all_reduce({}, bytes);
    ::raise(SIGKILL);
  }
  HostRank first = host.rank(0, [child](const std::vector<int>&) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child && WIFSIGNALED(status)) {
      throw Error(ErrorKind::kPeerLost, "rank 1 is lost");
    }
  });
  for (int i = 0; i < 100; ++i) first.all_reduce({}, bytes);
  EXPECT_EQ(data[0], std::ldexp(1.0F, 100));
  EXPECT_THROW(first.all_reduce({}, bytes), Error);
}

}  // namespace
}  // namespace trireme::collectives
