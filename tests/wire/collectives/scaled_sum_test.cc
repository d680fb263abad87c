// Sums in which each rank's elements are multiplied by its own scale.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <vector>

#include "tests/kernels/reference/combine.h"
#include "tests/wire/collectives/group_world.h"
#include "trireme/kernels/half.h"

namespace trireme::collectives::test {
namespace {

using testing::HasSubstr;
using transport::test::error_of_call;
using transport::test::expect_no_errors;
using transport::test::wait_for;

/// What a rank gives: numbers whose sums round.
std::vector<std::byte> scaled_input(Dtype dtype, std::int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_bytes(dtype));
  for (std::size_t at = 0; at < bytes.size(); at += size_bytes(dtype)) {
    const float x = normal(random);
    const double wide = x;
    const kernels::Bf16 brain = kernels::to_bf16(x);
    const kernels::F16 half = kernels::to_f16(x);
    const void* from = &x;
    if (dtype == Dtype::kF64) from = &wide;
    if (dtype == Dtype::kBf16) from = &brain;
    if (dtype == Dtype::kF16) from = &half;
    std::memcpy(bytes.data() + at, from, size_bytes(dtype));
  }
  return bytes;
}

/// No f32 has it, and no two ranks.
double scale_of(int rank) { return 1.0 / (rank + 3) - 0.15; }

/// Computed once for all ranks.
const std::vector<std::byte>& expected_scaled(Dtype dtype, std::int64_t count, int num_ranks) {
  static std::mutex mutex;
  static std::map<std::tuple<Dtype, std::int64_t, int>, std::vector<std::byte>> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({dtype, count, num_ranks});
  std::vector<std::byte>& result = entry->second;
  if (!is_new) return result;
  std::vector<std::vector<std::byte>> given;
  std::vector<const std::byte*> sources;
  std::vector<double> scales;
  for (int i = 0; i < num_ranks; ++i) {
    given.push_back(scaled_input(dtype, count, i));
    scales.push_back(scale_of(i));
  }
  for (const auto& bytes : given) sources.push_back(bytes.data());
  result.resize(given[0].size());
  kernels::reference::combine({dtype, kernels::ReduceOp::kScaledSum, scales}, sources,
                              result.data(), count);
  return result;
}

class ScaledSum : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, ScaledSum, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

constexpr std::array kScaledDtypes = {Dtype::kF32, Dtype::kF64, Dtype::kBf16, Dtype::kF16};

TEST_P(ScaledSum, IsTheTreeOverProducts) {
  for (const int num_ranks : {1, 2, 3, 5}) {
    expect_no_errors(run_group(GetParam(), num_ranks, [&](Group& group) {
      for (const Dtype dtype : kScaledDtypes) {
        for (const std::int64_t count : {0, 1, 7, 1025, 70'001}) {
          auto data = scaled_input(dtype, count, group.group_rank());
          wait_for(group.all_reduce({data, dtype}, scaled_sum(scale_of(group.group_rank()))));
          EXPECT_TRUE(data == expected_scaled(dtype, count, num_ranks))
              << num_ranks << " ranks, " << count << " of " << to_text(dtype);
        }
      }
    }));
  }
}

// By each algorithm that can; the others are not taken.
TEST_P(ScaledSum, HasTheSameBitsByAnyAlgorithm) {
  for (const Algorithm algorithm :
       {Algorithm::kOneShot, Algorithm::kTwoHop, Algorithm::kRing, Algorithm::kHalvingDoubling}) {
    const auto body = [&](Group& group) {
      auto data = scaled_input(Dtype::kF32, 5000, group.group_rank());
      wait_for(group.all_reduce({data, Dtype::kF32}, scaled_sum(scale_of(group.group_rank()))));
      EXPECT_TRUE(data == expected_scaled(Dtype::kF32, 5000, 4));
    };
    expect_no_errors(run_group(
        GetParam(), 4, body,
        {.deadline = std::chrono::seconds(20), .order = Order::kAny, .algorithm = algorithm}));
  }
}

TEST_P(ScaledSum, OfMemoryThatAllShare) {
  constexpr std::int64_t kCount = 300'001;
  expect_no_errors(run_group(GetParam(), 3, [&](Group& group) {
    const auto input = scaled_input(Dtype::kF32, kCount, group.group_rank());
    const std::span<std::byte> data = group.allocate(input.size());
    std::ranges::copy(input, data.begin());
    wait_for(group.all_reduce({data, Dtype::kF32}, scaled_sum(scale_of(group.group_rank()))));
    EXPECT_TRUE(std::ranges::equal(data, expected_scaled(Dtype::kF32, kCount, 3)));
  }));
}

TEST_P(ScaledSum, ForARootAndInParts) {
  constexpr std::int64_t kCount = 6001;
  expect_no_errors(run_group(GetParam(), 3, [&](Group& group) {
    const int rank = group.group_rank();
    const auto input = scaled_input(Dtype::kBf16, kCount, rank);
    const auto expected = expected_scaled(Dtype::kBf16, kCount, 3);
    auto data = input;
    wait_for(group.reduce({data, Dtype::kBf16}, 1, scaled_sum(scale_of(rank))));
    EXPECT_TRUE(data == (rank == 1 ? expected : input));
    data = input;
    wait_for(group.reduce_scatter({data, Dtype::kBf16}, scaled_sum(scale_of(rank))));
    std::vector<std::byte> all(data.size());
    std::vector<std::int64_t> bytes;
    for (int i = 0; i < 3; ++i) bytes.push_back(chunk_of(kCount, 3, i).size() * 2);
    const Chunk own = chunk_of(kCount, 3, rank);
    const std::span<std::byte> part = Elements(data, Dtype::kBf16).part(own).bytes;
    wait_for(group.all_gather(part, all, bytes));
    EXPECT_TRUE(all == expected);
  }));
}

TEST_P(ScaledSum, RefusesWhatMakesNoSense) {
  expect_no_errors(run_group(GetParam(), 2, [&](Group& group) {
    std::vector<float> data(10);
    const auto refused = [&](const Elements& of, double scale) {
      return error_of_call([&] { group.all_reduce(of, scaled_sum(scale)); }).message();
    };
    EXPECT_THAT(refused(std::span(data), std::numeric_limits<double>::infinity()),
                HasSubstr("no finite number"));
    std::vector<std::byte> whole(80);
    EXPECT_THAT(refused({whole, Dtype::kI64}, 2), HasSubstr("no scaled_sum of i64"));
  }));
}

// A rank that scales and one that does not call different operations.
TEST_P(ScaledSum, IsAnOperationOfItsOwn) {
  const Errors errors = run_group(GetParam(), 2, [](Group& group) {
    std::vector<float> data(10);
    wait_for(group.all_reduce(std::span(data), group.group_rank() == 0
                                                   ? scaled_sum(1)
                                                   : Reduce(kernels::ReduceOp::kSum)));
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("all_reduce of 10 f32 by scaled_sum"));
  }
}

}  // namespace
}  // namespace trireme::collectives::test
