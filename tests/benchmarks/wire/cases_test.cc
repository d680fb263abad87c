#include "benchmarks/wire/cases.h"

#include <gmock/gmock.h>

#include "tests/base/error_of.h"

namespace trireme::bench {
namespace {

using test::error_of;

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BenchCases, SizesAreASweepOrAList) {
  EXPECT_THAT(parse_sizes("4..1KiB"), ElementsAre(4, 16, 64, 256, 1024));
  EXPECT_THAT(parse_sizes("4..100"), ElementsAre(4, 16, 64, 100));
  EXPECT_THAT(parse_sizes("8..8"), ElementsAre(8));
  EXPECT_THAT(parse_sizes("4,65536,2MiB,7B"), ElementsAre(4, 65536, 2 << 20, 7));
  EXPECT_EQ(parse_sizes("4..256MiB").size(), 14);
}

TEST(BenchCases, WhatIsNoSizeIsNamed) {
  for (const char* text : {"", "4,", "0", "-4", "4..", "..4", "4KB", "17GiB", "4 KiB", "x"}) {
    const Error error = error_of([&] { parse_sizes(text); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << text;
    EXPECT_THAT(error.message(), HasSubstr("is no size"));
  }
}

TEST(BenchCases, OperationsKeepTheirOrder) {
  EXPECT_THAT(parse_operations("barrier,all_reduce"),
              ElementsAre(Collective::kBarrier, Collective::kAllReduce));
  const Error error = error_of([] { parse_operations("all_reduce,allreduce"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("'allreduce'"));
  EXPECT_THAT(error.message(), HasSubstr("all_to_all"));
}

TEST(BenchCases, SizesAreWholePartsOrElements) {
  const auto sizes_of = [](Collective operation, int num_ranks) {
    std::vector<std::int64_t> sizes;
    for (const Case& one : make_cases(
             {.operations = {operation}, .sizes = {1, 4, 30, 100}, .num_ranks = num_ranks})) {
      sizes.push_back(one.bytes);
    }
    return sizes;
  };
  EXPECT_THAT(sizes_of(Collective::kAllReduce, 3), ElementsAre(4, 28, 100));
  EXPECT_THAT(sizes_of(Collective::kAllGather, 3), ElementsAre(12, 24, 96));
  EXPECT_THAT(sizes_of(Collective::kReduceScatter, 3), ElementsAre(12, 24, 96));
  EXPECT_THAT(sizes_of(Collective::kAllToAll, 2), ElementsAre(8, 24, 96));
  EXPECT_THAT(sizes_of(Collective::kBarrier, 3), ElementsAre(0));
}

// nccl-tests: doc/PERFORMANCE.md.
TEST(BenchCases, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kBarrier, 4), 0);
}

TEST(BenchCases, LargeBuffersHaveFewIterations) {
  EXPECT_EQ(iterations_for(0), 400);
  EXPECT_EQ(iterations_for(4 << 20), 128);
  EXPECT_EQ(iterations_for(256 << 20), 4);
}

TEST(BenchCases, SizesInText) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1000), "1000 B");
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(std::int64_t{3} << 30), "3 GiB");
}

}  // namespace
}  // namespace trireme::bench
