// all_reduce and reduce_scatter against a naive sum in the order of the tree, bit by bit.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/wire/transport/worlds.h"
#include "trireme/kernels/reduce/tree.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::collectives {
namespace {

using namespace std::chrono_literals;
using transport::Endpoint;
using transport::test::Backend;
using transport::test::Endpoints;
using transport::test::expect_no_errors;
using transport::test::make_world;
using transport::test::run_ranks;

/// Numbers of very different sizes, so that every other order gives other bits.
template <typename T>
std::vector<T> numbers_of(int rank, std::int64_t count) {
  std::mt19937_64 random(1000 + rank);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    number = static_cast<T>(std::ldexp(mantissa(random), exponent(random)));
  }
  return numbers;
}

template <typename T>
std::vector<T> naive_sum(int num_ranks, std::int64_t count) {
  std::vector<std::vector<T>> parts;
  for (int rank = 0; rank < num_ranks; ++rank) parts.push_back(numbers_of<T>(rank, count));
  for (const kernels::Merge merge : kernels::tree_merges(num_ranks)) {
    for (std::int64_t i = 0; i < count; ++i) parts[merge.left][i] += parts[merge.right][i];
  }
  return parts[0];
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b, Chunk chunk) {
  return a.size() == b.size() &&
         std::memcmp(a.data() + chunk.begin, b.data() + chunk.begin, chunk.size() * sizeof(T)) == 0;
}

std::vector<int> all_ranks(const Endpoint& endpoint) {
  std::vector<int> ranks(endpoint.world_size());
  for (int rank = 0; rank < endpoint.world_size(); ++rank) ranks[rank] = rank;
  return ranks;
}

template <typename T>
void check_sums(Endpoint& endpoint, std::int64_t count) {
  Group group(endpoint, all_ranks(endpoint), {.name = "data", .id = 1, .deadline = 10s});
  const std::vector<T> sum = naive_sum<T>(group.size(), count);
  std::vector<T> reduced = numbers_of<T>(endpoint.rank(), count);
  std::vector<T> scattered = reduced;
  const auto first = group.all_reduce(std::span(reduced));
  const auto second = group.reduce_scatter(std::span(scattered));
  transport::wait(*first, 10s, {});
  transport::wait(*second, 10s, {});
  EXPECT_TRUE(same_bits(reduced, sum, {0, count}));

  const std::vector<T> before = numbers_of<T>(endpoint.rank(), count);
  const Chunk own = chunk_of(count, group.size(), group.group_rank());
  EXPECT_TRUE(same_bits(scattered, sum, own));
  EXPECT_TRUE(same_bits(scattered, before, {0, own.begin}));
  EXPECT_TRUE(same_bits(scattered, before, {own.end, count}));
}

// Backend, ranks, elements: a pairwise covering set of ranks {1, 2, 3, 4, 7, 8} and sizes.
using Case = std::tuple<Backend, int, std::int64_t>;

class Sums : public testing::TestWithParam<Case> {};

TEST_P(Sums, HaveTheBitsOfTheTree) {
  const auto [backend, num_ranks, count] = GetParam();
  Endpoints endpoints = make_world(backend, num_ranks);
  expect_no_errors(run_ranks(endpoints, [count = count](Endpoint& endpoint) {
    check_sums<float>(endpoint, count);
    check_sums<double>(endpoint, count);
    endpoint.shutdown(10s);
  }));
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto [backend, num_ranks, count] = info.param;
  return std::string(to_text(backend)) + "_" + std::to_string(num_ranks) + "_ranks_" +
         std::to_string(count);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Sums,
                         testing::Combine(testing::ValuesIn(transport::test::kBackends),
                                          testing::Values(1, 2, 3, 4, 7, 8),
                                          testing::Values(0, 1, 5, 16, 100, 1000, 100'000)),
                         name_of);

}  // namespace
}  // namespace trireme::collectives
