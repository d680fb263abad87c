// The operations of network.h against what they promise, bit by bit: every algorithm, many types
// and reductions, several segments.

#include "trireme/wire/collectives/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
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
NetworkBytes tree_of(int num_ranks, std::int64_t count, const kernels::Reduction& reduction) {
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
    Description description{.operation = Operation::kAllReduce,
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

class NetworkTest : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(Backends, NetworkTest, testing::ValuesIn(transport::test::kBackends),
                         testing::PrintToStringParamName());

TEST_P(NetworkTest, EveryAlgorithmHasTheBitsOfTheTree) {
  const AllReduceCase cases[] = {
      {2, 1, 70'001, Dtype::kF32, ReduceOp::kSum},  {3, 1, 100, Dtype::kF32, ReduceOp::kSum},
      {4, 2, 300'001, Dtype::kF32, ReduceOp::kSum}, {5, 1, 1000, Dtype::kF64, ReduceOp::kProduct},
      {6, 2, 999, Dtype::kF32, ReduceOp::kSum},     {7, 1, 4099, Dtype::kF64, ReduceOp::kSum},
      {8, 4, 5000, Dtype::kF32, ReduceOp::kSum},    {4, 2, 17, Dtype::kF64, ReduceOp::kMin},
      {3, 1, 4001, Dtype::kBf16, ReduceOp::kSum},   {4, 2, 4001, Dtype::kF16, ReduceOp::kAverage},
      {6, 3, 777, Dtype::kI32, ReduceOp::kSum},     {4, 1, 100, Dtype::kI64, ReduceOp::kXor},
      {3, 1, 1000, Dtype::kU8, ReduceOp::kMax},     {5, 1, 100, Dtype::kF32, ReduceOp::kAverage},
      {4, 2, 0, Dtype::kF32, ReduceOp::kSum},       {1, 1, 100, Dtype::kF32, ReduceOp::kSum},
      {8, 2, 1, Dtype::kF32, ReduceOp::kSum}};
  for (const AllReduceCase& c : cases) check_all_reduces(GetParam(), c);
}

// Rank 1 is the test: it gives one segment at a time, and has each reduced before the next.
TEST_P(NetworkTest, ReducedSegmentsLeaveWhileOthersArrive) {
  constexpr std::int64_t kSegments = 4;
  constexpr std::int64_t kSegmentElements = 64 * 1024;
  constexpr transport::Tag kTag = transport::Tag{1} << 63 | 9U << 3;
  const Description description{.operation = Operation::kAllReduce,
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
        rank.call(
            {.operation = Operation::kReduce,
             .dtype = Dtype::kBf16,
             .reduce = ReduceOp::kMax,
             .count = kCount,
             .root = root,
             .algorithm = algorithm},
            [&](Call& call) { network_reduce(call, {data, Dtype::kBf16}, ReduceOp::kMax, root); });
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
      rank.call({.operation = Operation::kReduceScatter,
                 .dtype = Dtype::kI32,
                 .count = 1000,
                 .algorithm = algorithm},
                [&](Call& call) {
                  network_reduce_scatter(call, {data, Dtype::kI32}, ReduceOp::kSum, parts);
                });
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
      rank.call({.operation = Operation::kAllGather, .count = 1000, .algorithm = algorithm},
                [&](Call& call) { network_all_gather(call, all, parts); });
      EXPECT_EQ(all, expected) << to_text(algorithm);
    }
  }));
}

TEST_P(NetworkTest, BroadcastInOneShot) {
  expect_no_errors(run_network(GetParam(), 4, [&](NetworkRank& rank) {
    const NetworkBytes sent = random_bytes(1, 600'000);
    NetworkBytes data = rank.rank() == 2 ? sent : NetworkBytes(sent.size());
    rank.call({.operation = Operation::kBroadcast,
               .count = std::ssize(data),
               .root = 2,
               .algorithm = Algorithm::kOneShot},
              [&](Call& call) { network_broadcast(call, data, 2); });
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
      const std::vector<std::span<const std::byte>> send_parts(sent.begin(), sent.end());
      const std::vector<std::span<std::byte>> recv_parts(received.begin(), received.end());
      rank.call({.operation = Operation::kAllToAll},
                [&](Call& call) { network_all_to_all(call, send_parts, recv_parts); });
      for (int i = 0; i < num_ranks; ++i) EXPECT_EQ(received[i], letter(i, rank.rank()));
    }));
  }
}

// ---- Ranks that differ

/// Rank 2 of four calls `other`, the rest call `most`: all are told within 2 s.
void expect_difference(Backend backend, const std::function<void(NetworkRank&)>& most,
                       const std::function<void(NetworkRank&)>& other, const std::string& most_text,
                       const std::string& other_text) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(backend, 4, [&](NetworkRank& rank) {
    rank.barrier();
    rank.rank() == 2 ? other(rank) : most(rank);
    // A rank may have been done before the others met the odd one.
    rank.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_EQ(error->message(), errors[0]->message());
    EXPECT_THAT(error->message(), testing::HasSubstr("the ranks call different operations"));
    EXPECT_THAT(error->message(), testing::HasSubstr("operation 1: " + most_text + " among"));
    EXPECT_THAT(error->message(),
                testing::HasSubstr("rank 2 operation 1: " + other_text + " among"));
    EXPECT_EQ(error->context().group, "net");
  }
}

std::function<void(NetworkRank&)> reduce_f32(std::int64_t count, const Description& description) {
  return [count, description](NetworkRank& rank) {
    std::vector<float> data(count, 1);
    rank.all_reduce(std::span(data), description);
  };
}

std::function<void(NetworkRank&)> broadcast_from(int root, Algorithm algorithm) {
  return [root, algorithm](NetworkRank& rank) {
    NetworkBytes data(100);
    rank.call(
        {.operation = Operation::kBroadcast, .count = 100, .root = root, .algorithm = algorithm},
        [&](Call& call) { network_broadcast(call, data, root); });
  };
}

TEST_P(NetworkTest, RanksThatDifferInAnythingAreTold) {
  const auto expect = [&](const auto&... all) { expect_difference(GetParam(), all...); };
  const Description ring{.algorithm = Algorithm::kRing, .order = Order::kAny};
  const Description halves{.algorithm = Algorithm::kHalvingDoubling};
  expect(reduce_f32(100, {}), reduce_f32(101, {}), "all_reduce of 100 f32",
         "all_reduce of 101 f32");
  expect(reduce_f32(100, {}), reduce_f32(100, {.reduce = ReduceOp::kMax}), "all_reduce of 100 f32",
         "all_reduce of 100 f32 by max");
  expect(reduce_f32(100, {}), reduce_f32(100, {.order = Order::kAny}), "all_reduce of 100 f32",
         "all_reduce of 100 f32 in any order");
  expect(reduce_f32(5, halves), reduce_f32(5, ring), "all_reduce of 5 f32 by halving_doubling",
         "all_reduce of 5 f32 by ring in any order");
  const auto reduce_i32 = [](NetworkRank& rank) {
    NetworkBytes data(400);
    rank.all_reduce({data, Dtype::kI32}, {});
  };
  expect(reduce_f32(100, {}), reduce_i32, "all_reduce of 100 f32", "all_reduce of 100 i32");
}

// Each waits for a message that nobody will send, and no message goes between them.
TEST_P(NetworkTest, RanksThatWouldNotMeetAreToldToo) {
  expect_difference(
      GetParam(), broadcast_from(0, Algorithm::kOneShot), broadcast_from(3, Algorithm::kOneShot),
      "broadcast of 100 u8 with root 0 by one_shot", "broadcast of 100 u8 with root 3 by one_shot");
  expect_difference(GetParam(), reduce_f32(100, {}), reduce_f32(0, {}), "all_reduce of 100 f32",
                    "all_reduce of 0 f32");
}

TEST_P(NetworkTest, ASkippedCallIsTold) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(GetParam(), 3, [&](NetworkRank& rank) {
    std::vector<double> data(1000, 1);
    if (rank.rank() != 1) rank.all_reduce(std::span(data), {});
    rank.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument) << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr("operation 0: all_reduce of 1000 f64 among"));
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1 operation 0: barrier among"));
  }
}

TEST_P(NetworkTest, ARankThatLeavesEarlyIsLost) {
  const auto start = std::chrono::steady_clock::now();
  const Errors errors = run_network(GetParam(), 3, [&](NetworkRank& rank) {
    rank.barrier();
    std::vector<double> data(1000, 1);
    if (rank.rank() != 1) rank.all_reduce(std::span(data), {});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kPeerLost) << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr("rank 1 is lost"));
  }
}

// A rank that is merely late is waited for, however often the others tell what they do.
TEST_P(NetworkTest, ALateRankIsNoDifference) {
  expect_no_errors(run_network(GetParam(), 3, [&](NetworkRank& rank) {
    std::vector<double> data(1000, 1);
    for (int round = 0; round < 3; ++round) {
      if (rank.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      rank.all_reduce(std::span(data), {});
      rank.barrier();
    }
  }));
}

TEST_P(NetworkTest, APartOfAnotherSizeIsTold) {
  const Errors errors = run_network(GetParam(), 2, [&](NetworkRank& rank) {
    NetworkBytes mine(rank.rank() == 0 ? 10 : 12);
    NetworkBytes other(11);
    const int own = rank.rank();
    std::vector<std::span<const std::byte>> send_parts(2);
    std::vector<std::span<std::byte>> recv_parts(2);
    send_parts[1 - own] = mine;
    recv_parts[1 - own] = other;
    rank.call({.operation = Operation::kAllToAll},
              [&](Call& call) { network_all_to_all(call, send_parts, recv_parts); });
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->message(), testing::HasSubstr("its recv gave memory for 11"));
  }
}

TEST(Network, RefusesWhatContradictsTheCall) {
  const auto error_of_body = [](const Description& description,
                                const std::function<void(Call&)>& body) {
    const Errors errors =
        run_network(Backend::kSim, 1, [&](NetworkRank& rank) { rank.call(description, body); });
    EXPECT_TRUE(errors[0].has_value());
    return errors[0] ? errors[0]->message() : "no error";
  };
  std::vector<float> data(10);
  const Elements elements = std::span(data);
  const auto reduce = [&](Algorithm algorithm, ReduceOp op) {
    return [&, algorithm, op](Call& call) { network_all_reduce(call, elements, op, algorithm); };
  };
  Description task{.operation = Operation::kAllReduce, .dtype = Dtype::kF32, .count = 10};
  using testing::HasSubstr;
  EXPECT_THAT(error_of_body(task, reduce(Algorithm::kRing, ReduceOp::kSum)),
              HasSubstr("ring in a call of"));
  EXPECT_THAT(error_of_body(task, reduce(Algorithm::kTwoHop, ReduceOp::kMin)),
              HasSubstr("reduction by min in a call of"));
  task.algorithm = Algorithm::kRing;
  EXPECT_THAT(error_of_body(task, reduce(Algorithm::kRing, ReduceOp::kSum)),
              HasSubstr("ring cannot do"));
  task.count = 11;
  EXPECT_THAT(error_of_body(task, reduce(Algorithm::kRing, ReduceOp::kSum)),
              HasSubstr("all_reduce of 40 bytes of f32 in a call of"));
  const std::vector<Chunk> parts = {{0, 41}};
  EXPECT_THAT(error_of_body({.operation = Operation::kAllGather, .count = 40},
                            [&](Call& call) { network_all_gather(call, elements.bytes, parts); }),
              HasSubstr("are one per rank"));
}

}  // namespace
}  // namespace trireme::collectives::test
