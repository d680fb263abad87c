// all_reduce and reduce_scatter against a naive sum in the order of the tree, bit by bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/wire/collectives/group_world.h"
#include "trireme/kernels/reduce/tree.h"

namespace trireme::collectives::test {
namespace {

using transport::test::expect_no_errors;
using transport::test::wait_for;

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
  const auto bytes = [&](const std::vector<T>& numbers) {
    return std::as_bytes(std::span(numbers).subspan(chunk.begin, chunk.size()));
  };
  return std::ranges::equal(bytes(a), bytes(b));
}

template <typename T>
void check_sums(Group& group, const std::vector<T>& sum) {
  const auto count = static_cast<std::int64_t>(sum.size());
  const std::vector<T> before = numbers_of<T>(group.group_rank(), count);
  std::vector<T> reduced = before;
  std::vector<T> scattered = before;
  const WorkPtr first = group.all_reduce(std::span(reduced));
  const WorkPtr second = group.reduce_scatter(std::span(scattered));
  wait_for(first);
  wait_for(second);
  EXPECT_TRUE(same_bits(reduced, sum, {0, count}));
  const Chunk own = chunk_of(count, group.size(), group.group_rank());
  EXPECT_TRUE(same_bits(scattered, sum, own));
  EXPECT_TRUE(same_bits(scattered, before, {0, own.begin}));
  EXPECT_TRUE(same_bits(scattered, before, {own.end, count}));
}

struct Case {
  Backend backend;
  int num_ranks;
  std::int64_t count;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(to_text(info.param.backend)) + "_" + std::to_string(info.param.num_ranks) +
         "_ranks_" + std::to_string(info.param.count);
}

/// All pairs of (ranks, count) and of (backend, ranks), and each backend with several counts.
std::vector<Case> cases() {
  constexpr std::int64_t kCounts[] = {0, 1, 5, 16, 100, 1000, 4099, 100'000};
  std::vector<Case> result;
  int next = 0;
  for (const int num_ranks : {1, 2, 3, 4, 7, 8}) {
    for (const std::int64_t count : kCounts) {
      const auto& backends = transport::test::kUsualBackends;
      result.push_back({backends[next++ % backends.size()], num_ranks, count});
    }
    ++next;  // so that a count meets all backends
  }
  return result;
}

class Sums : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string reason = transport::test::why_absent(GetParam().backend);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Pairs, Sums, testing::ValuesIn(cases()), name_of);

TEST_P(Sums, HaveTheBitsOfTheTree) {
  const Case& param = GetParam();
  const auto sum_f32 = naive_sum<float>(param.num_ranks, param.count);
  const auto sum_f64 = naive_sum<double>(param.num_ranks, param.count);
  expect_no_errors(run_group(param.backend, param.num_ranks, [&](Group& group) {
    check_sums(group, sum_f32);
    check_sums(group, sum_f64);
  }));
}

// The order is what the test above would notice: a left fold has other bits.
TEST(SumsOracle, TellsOrdersApart) {
  std::vector<float> fold = numbers_of<float>(0, 1000);
  for (int rank = 1; rank < 4; ++rank) {
    const std::vector<float> part = numbers_of<float>(rank, 1000);
    for (int i = 0; i < 1000; ++i) fold[i] += part[i];
  }
  EXPECT_FALSE(same_bits(fold, naive_sum<float>(4, 1000), {0, 1000}));
}

}  // namespace
}  // namespace trireme::collectives::test
