// Operations over hosts of several ranks: two_level gives the bits of two_hop, whatever is summed and
// whatever the parts.

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/collectives/network_world.h"
#include "trireme/wire/collectives/eligible.h"

namespace trireme::collectives::test {
namespace {

using enum Collective;
using kernels::ReduceOp;
using transport::test::expect_no_errors;
using transport::test::random_bytes;
using HostBytes = std::vector<std::byte>;

struct HostsCase {
  int num_ranks;
  int ranks_per_host;
  std::int64_t count;
  Dtype dtype;
  ReduceOp op;
};

/// Numbers around 1, whose sums depend on the order and on where they are rounded.
HostBytes numbers_of(int rank, const HostsCase& c) {
  const std::size_t size = size_bytes(c.dtype);
  HostBytes bytes = random_bytes(900 + rank, c.count * size);
  const bool is_f16 = c.dtype == Dtype::kF16;
  for (std::size_t i = size - 1; i < bytes.size(); i += size) {
    bytes[i] = (bytes[i] & std::byte{0x80}) | (is_f16 ? std::byte{0x3b} : std::byte{0x3f});
  }
  return bytes;
}

/// Parts of the data by rank: uneven, one empty, in another order than the ranks, with a hole.
std::vector<Chunk> odd_parts(const HostsCase& c) {
  std::vector<Chunk> parts(c.num_ranks);
  const std::int64_t step = c.count / c.num_ranks;
  for (int i = 0; i < c.num_ranks; ++i) {
    parts[(i + 1) % c.num_ranks] = {i * step, i == 1 ? i * step : (i + 1) * step - i % 2};
  }
  return parts;
}

/// What rank's data is after the operation.
HostBytes result_of(NetworkRank& rank, const HostsCase& c, Collective operation,
                    Algorithm algorithm) {
  HostBytes data = numbers_of(rank.rank(), c);
  const bool is_sum = reduces(operation);
  const Dtype dtype = is_sum ? c.dtype : Dtype::kU8;
  Request request{.description = {.operation = operation,
                                  .dtype = dtype,
                                  .reduce = c.op,
                                  .count = Elements(data, dtype).count(),
                                  .algorithm = algorithm},
                  .scale = 1.0 / (rank.rank() + 3),
                  .data = {data, dtype}};
  if (operation == kReduce || operation == kBroadcast) request.description.root = c.num_ranks - 2;
  if (operation == kReduceScatter || operation == kAllGather) request.parts = odd_parts(c);
  rank.call(request);
  return data;
}

class HostsTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, HostsTest, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(HostsTest, TwoLevelHasTheBitsOfTwoHops) {
  const HostsCase cases[] = {{4, 2, 50'001, Dtype::kF32, ReduceOp::kSum},
                             {6, 2, 999, Dtype::kF64, ReduceOp::kAverage},
                             {8, 4, 40'001, Dtype::kBf16, ReduceOp::kScaledSum},
                             {6, 2, 5000, Dtype::kF16, ReduceOp::kAverage},
                             {8, 2, 300, Dtype::kBf16, ReduceOp::kSum},
                             {4, 2, 7, Dtype::kF32, ReduceOp::kScaledSum}};
  for (const HostsCase& c : cases) {
    const auto body = [&](NetworkRank& rank) {
      for (const Collective operation :
           {kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast}) {
        const HostBytes expected = result_of(rank, c, operation, Algorithm::kTwoHop);
        EXPECT_EQ(result_of(rank, c, operation, Algorithm::kTwoLevel), expected)
            << to_text(operation) << " of " << c.count << " " << to_text(c.dtype) << " by "
            << kernels::to_text(c.op) << " on " << c.num_ranks << " ranks, " << c.ranks_per_host
            << " per host";
      }
      rank.call({.description = {.operation = kBarrier, .algorithm = Algorithm::kTwoLevel}});
    };
    expect_no_errors(
        run_network(GetParam(), c.num_ranks, body, {.ranks_per_host = c.ranks_per_host}));
  }
}

// Three ranks to a host are no subtree: in any order they can be one partial result.
TEST_P(HostsTest, AnyOrderOfAnyHosts) {
  constexpr int kNumRanks = 6;
  const HostsCase c{kNumRanks, 3, 3001, Dtype::kBf16, ReduceOp::kAverage};
  std::vector<HostBytes> results(kNumRanks);
  const auto body = [&](NetworkRank& rank) {
    HostBytes& data = results[rank.rank()];
    data = numbers_of(rank.rank(), c);
    rank.all_reduce({data, c.dtype},
                    {.reduce = c.op, .algorithm = Algorithm::kTwoLevel, .order = Order::kAny});
    const HostBytes sum = result_of(rank, c, kAllReduce, Algorithm::kTwoHop);
    for (std::int64_t i = 0; i < c.count; ++i) {  // bf16: the upper half of an f32
      const auto number = [i](const HostBytes& bytes) {
        std::uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        return std::bit_cast<float>(std::uint32_t{half} << 16);
      };
      ASSERT_NEAR(number(data), number(sum), 0.05) << i;
    }
  };
  expect_no_errors(run_network(GetParam(), kNumRanks, body, {.ranks_per_host = c.ranks_per_host}));
  for (const HostBytes& result : results) EXPECT_EQ(result, results[0]);
}

// A barrier ends on no rank before the last has begun.
TEST_P(HostsTest, BarriersOfTwoLevelsHoldEveryRank) {
  constexpr int kNumRanks = 6;
  for (int last = 0; last < kNumRanks; ++last) {
    std::atomic<int> num_begun = 0;
    const auto body = [&](NetworkRank& rank) {
      if (rank.rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ++num_begun;
      rank.call({.description = {.operation = kBarrier, .algorithm = Algorithm::kTwoLevel}});
      EXPECT_EQ(num_begun, kNumRanks);
    };
    expect_no_errors(run_network(GetParam(), kNumRanks, body, {.ranks_per_host = 2}));
  }
}

}  // namespace
}  // namespace trireme::collectives::test
