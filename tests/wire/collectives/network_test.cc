// The operations of network.h against what they promise, bit by bit: every algorithm, many types
// and reductions, several segments.

#include "trireme/wire/collectives/network.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/wire/collectives/network_world.h"
#include "trireme/wire/collectives/eligible.h"

namespace trireme::collectives::test {
namespace {

using kernels::ReduceOp;
using transport::test::expect_no_errors;
using transport::test::random_bytes;
using NetworkBytes = std::vector<std::byte>;

/// Elements whose reductions depend on the order: no NaN, few of equal size.
NetworkBytes elements_of(int rank, std::int64_t count, Dtype dtype) {
  NetworkBytes bytes = random_bytes(500 + rank, count * size_bytes(dtype));
  const std::size_t size = size_bytes(dtype);
  for (std::size_t i = size - 1; i < bytes.size(); i += size) {
    if (dtype == Dtype::kF32 || dtype == Dtype::kBf16 || dtype == Dtype::kF64) {
      // The exponent's high bits: near those of 1.
      bytes[i] = (bytes[i] & std::byte{0x80}) | std::byte{0x3f};
    } else if (dtype == Dtype::kF16) {
      bytes[i] = (bytes[i] & std::byte{0x83}) | std::byte{0x38};
    }
  }
  return bytes;
}

/// What `combine` makes of the elements of all ranks: THE tree.
NetworkBytes tree_of(int num_ranks, std::int64_t count,
                     const kernels::ElementReduction& reduction) {
  std::vector<NetworkBytes> parts;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < num_ranks; ++rank) {
    parts.push_back(elements_of(rank, count, reduction.dtype));
    sources.push_back(parts.back().data());
  }
  NetworkBytes result(count * size_bytes(reduction.dtype));
  std::byte* const targets[] = {result.data()};
  kernels::combine(reduction, sources, targets, count);
  return result;
}

struct AllReduceCase {
  int num_ranks;
  int ranks_per_host;
  std::int64_t count;
  Dtype dtype;
  ReduceOp op;
};

/// All eligible algorithms, one after another.
void check_all_reduces(Backend backend, const AllReduceCase& c) {
  const NetworkBytes expected = tree_of(c.num_ranks, c.count, {.dtype = c.dtype, .op = c.op});
  const auto body = [&](NetworkRank& rank) {
    Description description{.operation = Collective::kAllReduce,
                            .dtype = c.dtype,
                            .reduce = c.op,
                            .group_size = static_cast<std::uint32_t>(c.num_ranks)};
    for (const Algorithm algorithm : eligible_algorithms(description, c.ranks_per_host)) {
      description.algorithm = algorithm;
      NetworkBytes data = elements_of(rank.rank(), c.count, c.dtype);
      rank.all_reduce({data, c.dtype}, description);
      EXPECT_EQ(data, expected) << to_text(algorithm) << " of " << c.count << " "
                                << to_text(c.dtype) << " by " << kernels::to_text(c.op) << " on "
                                << c.num_ranks << " ranks, " << c.ranks_per_host << " per host";
    }
  };
  expect_no_errors(run_network(backend, c.num_ranks, body, {.ranks_per_host = c.ranks_per_host}));
}

class NetworkTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, NetworkTest, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(NetworkTest, EveryAlgorithmHasTheBitsOfTheTree) {
  const AllReduceCase cases[] = {{2, 1, 70'001, Dtype::kF32, ReduceOp::kSum},
                                 {3, 1, 100, Dtype::kF32, ReduceOp::kSum},
                                 {4, 2, 300'001, Dtype::kF32, ReduceOp::kSum},
                                 {5, 1, 1000, Dtype::kF64, ReduceOp::kProduct},
                                 {6, 2, 999, Dtype::kF32, ReduceOp::kSum},
                                 {7, 1, 4099, Dtype::kF64, ReduceOp::kSum},
                                 {8, 4, 5000, Dtype::kF32, ReduceOp::kSum},
                                 {4, 2, 17, Dtype::kF64, ReduceOp::kMin},
                                 {3, 1, 4001, Dtype::kBf16, ReduceOp::kSum},
                                 {4, 2, 4001, Dtype::kF16, ReduceOp::kAverage},
                                 {6, 3, 777, Dtype::kI32, ReduceOp::kSum},
                                 {4, 1, 100, Dtype::kI64, ReduceOp::kXor},
                                 {3, 1, 1000, Dtype::kU8, ReduceOp::kMax},
                                 {5, 1, 100, Dtype::kF32, ReduceOp::kAverage},
                                 {4, 2, 0, Dtype::kF32, ReduceOp::kSum},
                                 {1, 1, 100, Dtype::kF32, ReduceOp::kSum},
                                 {8, 2, 1, Dtype::kF32, ReduceOp::kSum},
                                 {8, 4, 5001, Dtype::kBf16, ReduceOp::kRoundedSum},
                                 {6, 2, 999, Dtype::kBf16, ReduceOp::kRoundedSum}};
  for (const AllReduceCase& c : cases) check_all_reduces(GetParam(), c);
}

// Rank 1 is the test: it gives one segment at a time, and has each reduced before the next.
TEST_P(NetworkTest, ReducedSegmentsLeaveWhileOthersArrive) {
  constexpr std::int64_t kSegments = 4;
  constexpr std::int64_t kSegmentElements = 64 * 1024;
  constexpr transport::Tag kTag = transport::Tag{1} << 63 | 9U << 3;
  const Description description{.operation = Collective::kAllReduce,
                                .dtype = Dtype::kF32,
                                .count = 2 * kSegments * kSegmentElements,
                                .group_size = 2};
  Endpoints endpoints = transport::test::make_world(GetParam(), 2);
  expect_no_errors(transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    std::vector<float> data(description.count, 1);
    if (endpoint.rank() == 0) {
      NetworkRank rank(endpoint, {0, 1}, std::chrono::seconds(20), 1);
      rank.all_reduce(std::span(data), {});
      EXPECT_EQ(data, std::vector<float>(data.size(), 3));
      return;
    }
    const auto recv = [&](float expected) {
      NetworkBytes received;
      transport::test::wait_for(endpoint.recv(0, kTag, transport::test::into(received)));
      std::vector<float> numbers(received.size() / sizeof(float));
      std::memcpy(numbers.data(), received.data(), received.size());
      EXPECT_EQ(numbers, std::vector<float>(kSegmentElements, expected));
    };
    const auto send = [&](float value) {
      const std::vector<float> numbers(kSegmentElements, value);
      transport::test::wait_for(
          endpoint.send(0, kTag, std::as_bytes(std::span(numbers)), to_bytes(description)));
    };
    for (int i = 0; i < kSegments; ++i) recv(1);
    for (int i = 0; i < kSegments; ++i) {
      send(2);
      recv(3);
    }
    for (int i = 0; i < kSegments; ++i) send(3);
  }));
}

TEST_P(NetworkTest, AnyOrderHasTheSameBitsOnAllRanks) {
  constexpr int kRanks = 5;
  constexpr std::int64_t kCount = 100'000;
  std::vector<NetworkBytes> results(kRanks);
  expect_no_errors(run_network(GetParam(), kRanks, [&](NetworkRank& rank) {
    results[rank.rank()] = elements_of(rank.rank(), kCount, Dtype::kF32);
    rank.all_reduce({results[rank.rank()], Dtype::kF32},
                    {.algorithm = Algorithm::kRing, .order = Order::kAny});
  }));
  for (const NetworkBytes& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_NE(results[0], tree_of(kRanks, kCount, {}));  // else this would tell nothing
}

TEST_P(NetworkTest, ReduceGivesOnlyTheRootTheResult) {
  constexpr std::int64_t kCount = 200'000;
  for (const int num_ranks : {1, 2, 3, 5}) {
    const NetworkBytes expected =
        tree_of(num_ranks, kCount, {.dtype = Dtype::kBf16, .op = ReduceOp::kMax});
    expect_no_errors(run_network(GetParam(), num_ranks, [&](NetworkRank& rank) {
      for (const Algorithm algorithm : {Algorithm::kOneShot, Algorithm::kTwoHop}) {
        const int root = num_ranks / 2;
        const NetworkBytes before = elements_of(rank.rank(), kCount, Dtype::kBf16);
        NetworkBytes data = before;
        rank.call({.description = {.operation = Collective::kReduce,
                                   .dtype = Dtype::kBf16,
                                   .reduce = ReduceOp::kMax,
                                   .count = kCount,
                                   .root = root,
                                   .algorithm = algorithm},
                   .data = {data, Dtype::kBf16}});
        EXPECT_EQ(data, rank.rank() == root ? expected : before);
      }
    }));
  }
}

/// Of 1000 elements: uneven, one empty, in no order, with a hole.
std::vector<Chunk> uneven_parts() { return {{500, 1000}, {0, 7}, {100, 100}, {7, 400}}; }

TEST_P(NetworkTest, ReduceScatterTakesAnyParts) {
  const std::vector<Chunk> parts = uneven_parts();
  const NetworkBytes sum = tree_of(4, 1000, {.dtype = Dtype::kI32});
  expect_no_errors(run_network(GetParam(), 4, [&](NetworkRank& rank) {
    for (const Algorithm algorithm : {Algorithm::kTwoHop, Algorithm::kRing}) {
      NetworkBytes expected = elements_of(rank.rank(), 1000, Dtype::kI32);
      NetworkBytes data = expected;
      const Chunk own = parts[rank.rank()];
      std::copy(sum.begin() + own.begin * 4, sum.begin() + own.end * 4,
                expected.begin() + own.begin * 4);
      rank.call({.description = {.operation = Collective::kReduceScatter,
                                 .dtype = Dtype::kI32,
                                 .count = 1000,
                                 .algorithm = algorithm},
                 .data = {data, Dtype::kI32},
                 .parts = parts});
      EXPECT_EQ(data, expected) << to_text(algorithm);
    }
  }));
}

TEST_P(NetworkTest, AllGatherTakesAnyParts) {
  const std::vector<Chunk> parts = uneven_parts();
  expect_no_errors(run_network(GetParam(), 4, [&](NetworkRank& rank) {
    for (const Algorithm algorithm : {Algorithm::kTwoHop, Algorithm::kRing}) {
      NetworkBytes all = random_bytes(rank.rank(), 1000);
      NetworkBytes expected = all;
      for (int i = 0; i < 4; ++i) {
        const NetworkBytes other = random_bytes(i, 1000);
        std::copy(other.begin() + parts[i].begin, other.begin() + parts[i].end,
                  expected.begin() + parts[i].begin);
      }
      rank.call({.description = {.operation = Collective::kAllGather,
                                 .count = 1000,
                                 .algorithm = algorithm},
                 .data = {all, Dtype::kU8},
                 .parts = parts});
      EXPECT_EQ(all, expected) << to_text(algorithm);
    }
  }));
}

TEST_P(NetworkTest, BroadcastInOneShot) {
  expect_no_errors(run_network(GetParam(), 4, [&](NetworkRank& rank) {
    const NetworkBytes sent = random_bytes(1, 600'000);
    NetworkBytes data = rank.rank() == 2 ? sent : NetworkBytes(sent.size());
    rank.call({.description = {.operation = Collective::kBroadcast,
                               .count = std::ssize(data),
                               .root = 2,
                               .algorithm = Algorithm::kOneShot},
               .data = {data, Dtype::kU8}});
    EXPECT_EQ(data, sent);
  }));
}

/// What rank `from` sends to rank `to`: of any size, some empty.
NetworkBytes letter(int from, int to) {
  return random_bytes(from * 100 + to, (from * 7 + to * 3) % 4 * 150'000 / (to + 1));
}

TEST_P(NetworkTest, AllToAllTakesAnyParts) {
  for (const int num_ranks : {1, 2, 5}) {
    expect_no_errors(run_network(GetParam(), num_ranks, [&](NetworkRank& rank) {
      std::vector<NetworkBytes> sent;
      std::vector<NetworkBytes> received;
      for (int i = 0; i < num_ranks; ++i) {
        sent.push_back(letter(rank.rank(), i));
        received.emplace_back(letter(i, rank.rank()).size());
      }
      rank.call({.description = {.operation = Collective::kAllToAll},
                 .sends = {sent.begin(), sent.end()},
                 .recvs = {received.begin(), received.end()}});
      for (int i = 0; i < num_ranks; ++i) EXPECT_EQ(received[i], letter(i, rank.rank()));
    }));
  }
}

TEST_P(NetworkTest, EqualPartsGoOverTwoLevels) {
  constexpr int kNumRanks = 4, kPart = 1000;
  const auto part = [](int from, int to) {
    return elements_of(kNumRanks * from + to, kPart, Dtype::kU8);
  };
  const auto body = [&](NetworkRank& rank) {
    NetworkBytes sent, received(kNumRanks * kPart), expected;
    std::vector<std::span<const std::byte>> sends;
    std::vector<std::span<std::byte>> recvs;
    for (int i = 0; i < kNumRanks; ++i) {
      std::ranges::copy(part(rank.rank(), i), std::back_inserter(sent));
      std::ranges::copy(part(i, rank.rank()), std::back_inserter(expected));
    }
    for (int i = 0; i < kNumRanks; ++i) {
      sends.push_back(std::span(sent).subspan(i * kPart, kPart));
      recvs.push_back(std::span(received).subspan(i * kPart, kPart));
    }
    rank.call({.description = {.operation = Collective::kAllToAll,
                               .count = kPart,
                               .algorithm = Algorithm::kTwoLevel},
               .sends = sends,
               .recvs = recvs});
    EXPECT_EQ(received, expected);
  };
  expect_no_errors(run_network(GetParam(), kNumRanks, body, {.ranks_per_host = 2}));
}

// Of equal length, so that one with another's schedule would go unnoticed but for its bytes.
TEST_P(NetworkTest, CallsThatComeAgainMakeNoScheduleAndHaveTheirOwn) {
  constexpr int kNumRanks = 3;
  constexpr std::int64_t kCount = 300;
  const NetworkBytes sum = tree_of(kNumRanks, kCount, {});
  const NetworkBytes most = tree_of(kNumRanks, kCount, {.op = ReduceOp::kMax});
  expect_no_errors(run_network(GetParam(), kNumRanks, [&](NetworkRank& rank) {
    for (int round = 0; round < 3; ++round) {
      for (const Algorithm algorithm : {Algorithm::kTwoHop, Algorithm::kHalvingDoubling}) {
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {  // one schedule for both
          NetworkBytes data = elements_of(rank.rank(), kCount, Dtype::kF32);
          rank.all_reduce({data, Dtype::kF32}, {.reduce = op, .algorithm = algorithm});
          EXPECT_EQ(data, op == ReduceOp::kSum ? sum : most) << to_text(algorithm);
        }
      }
      for (const int root : {0, 1}) {
        const NetworkBytes sent = random_bytes(root, kCount * 4);
        NetworkBytes data = rank.rank() == root ? sent : NetworkBytes(sent.size());
        rank.call({.description = {.operation = Collective::kBroadcast,
                                   .count = std::ssize(data),
                                   .root = root},
                   .data = {data, Dtype::kU8}});
        EXPECT_EQ(data, sent) << root;
      }
      rank.barrier();
      EXPECT_EQ(rank.num_schedules_made(), 5) << round;
    }
  }));
}

}  // namespace
}  // namespace trireme::collectives::test
