#include "benchmarks/wire/pattern.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/base/error_of.h"

namespace trireme::bench {
namespace {

using test::error_of;

constexpr int kRanks = 3;
constexpr std::int64_t kPart = 50;

template <typename T>
std::vector<T> input(int rank, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const Dtype dtype = sizeof(T) == 4 ? Dtype::kF32 : Dtype::kF64;
  fill(std::as_writable_bytes(std::span(values)), dtype, Pattern::kWhole, rank);
  return values;
}

/// What a right implementation gives: worked out here from the inputs alone.
template <typename T>
std::vector<T> right_result(Collective operation, int rank) {
  std::vector<T> result;
  for (int other = 0; other < kRanks; ++other) {
    const auto part = input<T>(other, kPart);
    const auto all = input<T>(other, kPart * kRanks);
    if (operation == Collective::kAllGather) {
      result.insert(result.end(), part.begin(), part.end());
    } else if (operation == Collective::kAllToAll) {
      result.insert(result.end(), all.begin() + rank * kPart, all.begin() + (rank + 1) * kPart);
    } else if (operation == Collective::kBroadcast) {
      if (other == 0) result = all;
    } else {
      result.resize(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) result[i] += all[i];
    }
  }
  return result;
}

template <typename T>
void expect_wrong_counted(Collective operation, Dtype dtype) {
  const Case one{.operation = operation, .bytes = kRanks * kPart * sizeof(T), .dtype = dtype};
  for (int rank = 0; rank < kRanks; ++rank) {
    const Checker checker{.what = one, .rank = rank, .num_ranks = kRanks};
    auto result = right_result<T>(operation, rank);
    EXPECT_EQ(checker.count_wrong(std::as_bytes(std::span(result)), 0), 0) << rank;
    const auto part = std::as_bytes(std::span(result)).subspan(kPart * sizeof(T));
    const bool may_be_part = operation == Collective::kReduceScatter;
    EXPECT_EQ(checker.count_wrong(part, kPart), may_be_part ? 0 : kPart) << rank;
    result[0] = std::nextafter(result[0], T(100));
    result[17] += 1;
    result.back() = std::nan("");
    EXPECT_EQ(checker.count_wrong(std::as_bytes(std::span(result)), 0), 3) << rank;
  }
}

TEST(BenchPattern, EveryWrongElementIsCounted) {
  for (const Collective operation : known_operations()) {
    if (operation == Collective::kBarrier) continue;
    SCOPED_TRACE(collectives::to_text(operation));
    expect_wrong_counted<float>(operation, Dtype::kF32);
    expect_wrong_counted<double>(operation, Dtype::kF64);
  }
}

TEST(BenchPattern, RanksAndPositionsDiffer) {
  EXPECT_NE(input<float>(0, 100), input<float>(1, 100));
  const auto values = input<float>(0, 100);
  EXPECT_NE(std::vector(values.begin(), values.begin() + 50),
            std::vector(values.begin() + 50, values.end()));
  for (const float value : values) EXPECT_TRUE(value >= 0 && value <= 7 && value == int(value));
}

TEST(BenchPattern, SumsOfRealsDependOnTheOrder) {
  std::vector<float> values[3];
  for (int rank = 0; rank < 3; ++rank) {
    values[rank].resize(1000);
    fill(std::as_writable_bytes(std::span(values[rank])), Dtype::kF32, Pattern::kReal, rank);
  }
  int differing = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const float left = (values[0][i] + values[1][i]) + values[2][i];
    const float right = values[0][i] + (values[1][i] + values[2][i]);
    differing += left == right ? 0 : 1;
  }
  EXPECT_GT(differing, 100);
}

TEST(BenchPattern, WhatIsWrongIsNoResult) {
  std::vector<float> values(4);
  fill_with_wrong(std::as_writable_bytes(std::span(values)));
  const Checker checker{.what = {.bytes = 16}, .rank = 0, .num_ranks = 2};
  EXPECT_EQ(checker.count_wrong(std::as_bytes(std::span(values)), 0), 4);
  EXPECT_EQ(checker.count_wrong({}, 0), 4);
}

TEST(BenchPattern, OtherDtypesAreRefused) {
  std::vector<std::byte> bytes(4);
  EXPECT_EQ(error_of([&] { fill(bytes, Dtype::kBf16, Pattern::kWhole, 0); }).kind(),
            ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace trireme::bench
