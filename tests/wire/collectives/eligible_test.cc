// Which algorithm can do what, and that it has schedules of that and of nothing else.

#include "trireme/wire/collectives/eligible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives::test {
namespace {

using enum Algorithm;
using enum Collective;
using testing::HasSubstr;
using transport::test::error_of_call;

TEST(Eligible, FollowsFromOrderAndType) {
  const auto names = [](const Description& task, int ranks_per_host = 1) {
    std::string text;
    for (const Algorithm algorithm : eligible_algorithms(task, ranks_per_host)) {
      text += std::string(to_text(algorithm)) + " ";
    }
    return text;
  };
  Description parts{.operation = Collective::kAllToAll, .count = 5, .group_size = 8};
  EXPECT_EQ(names(parts, 4), "two_hop two_level ");
  EXPECT_EQ(names(parts, 8), "two_hop ");
  parts.count = 0;  // of any sizes
  EXPECT_EQ(names(parts, 4), "two_hop ");
  for (const Collective operation : {kGather, kScatter}) {
    EXPECT_EQ(names({.operation = operation, .group_size = 8}, 4), "two_hop ");
  }
  EXPECT_EQ(names({.operation = kBarrier, .group_size = 8}, 4), "two_hop two_level ");
  EXPECT_EQ(names({.operation = kBroadcast, .group_size = 12}, 3), "one_shot two_hop two_level ");
  EXPECT_EQ(names({.operation = kAllGather, .group_size = 12}, 3), "two_hop ring two_level ");
  Description halves{.operation = kReduceScatter, .dtype = Dtype::kBf16, .group_size = 12};
  EXPECT_EQ(names(halves, 2), "two_hop two_level ");
  EXPECT_EQ(names(halves, 3), "two_hop ");
  halves.operation = kReduce;
  halves.reduce = kernels::ReduceOp::kScaledSum;
  EXPECT_EQ(names(halves, 2), "one_shot two_hop two_level ");
  Description task{.operation = Collective::kAllReduce, .dtype = Dtype::kF32, .group_size = 8};
  EXPECT_EQ(names(task), "one_shot two_hop halving_doubling ");
  EXPECT_EQ(names(task, 4), "one_shot two_hop halving_doubling two_level ");
  EXPECT_EQ(names(task, 8), "one_shot two_hop halving_doubling ");
  task.group_size = 12;
  EXPECT_EQ(names(task, 3), "one_shot two_hop halving_doubling ");
  task.order = Order::kAny;
  EXPECT_EQ(names(task, 3), "one_shot two_hop halving_doubling ring two_level ");
  task.dtype = Dtype::kBf16;
  EXPECT_EQ(names(task), "one_shot two_hop halving_doubling ring ");
  task.order = Order::kCanonical;
  EXPECT_EQ(names(task), "one_shot two_hop ");
  task.reduce = kernels::ReduceOp::kMax;
  EXPECT_EQ(names(task), "one_shot two_hop halving_doubling ");
  task.reduce = kernels::ReduceOp::kRoundedSum;
  EXPECT_EQ(names(task), "one_shot two_hop halving_doubling ");
  EXPECT_EQ(names(task, 4), "one_shot two_hop halving_doubling two_level ");
  task.reduce = kernels::ReduceOp::kAverage;
  task.dtype = Dtype::kF64;
  EXPECT_EQ(names(task), "one_shot two_hop ");
  EXPECT_EQ(names(task, 4), "one_shot two_hop two_level ");
  task.dtype = Dtype::kI32;
  EXPECT_EQ(names(task), "");
  task.reduce = kernels::ReduceOp::kSum;
  EXPECT_EQ(names(task), "one_shot two_hop halving_doubling ring ");
  task.operation = Collective::kReduceScatter;
  EXPECT_EQ(names(task), "two_hop ring ");
  EXPECT_EQ(names(task, 3), "two_hop ring two_level ");  // whole numbers
  EXPECT_THAT(error_of_call([&] { check_eligible(kOneShot, task); }).message(),
              HasSubstr("one_shot cannot do operation 0: reduce_scatter of 0 i32 among 12 ranks in "
                        "canonical order; these can: two_hop, ring"));
}

TEST(Eligible, NamesReadBack) {
  for (int i = 0; i < kNumAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_EQ(entry_of(algorithm).algorithm, algorithm) << "the table is in another order";
    EXPECT_EQ(parse_algorithm(to_text(algorithm)), algorithm);
  }
  EXPECT_EQ(parse_order(to_text(Order::kAny)), Order::kAny);
  EXPECT_FALSE(parse_algorithm("two hops").has_value());
  EXPECT_FALSE(parse_order("").has_value());
}

// Of what an algorithm cannot do it makes nothing, rather than something that would be wrong.
TEST(Eligible, WhatCanBeDoneHasASchedule) {
  for (const AlgorithmEntry* entry : kAlgorithmTable) {
    for (int i = 0; i <= static_cast<int>(kAllToAll); ++i) {
      const auto operation = static_cast<Collective>(i);
      const CollectiveSetting setting{.operation = operation,
                                      .algorithm = entry->algorithm,
                                      .num_ranks = 4,
                                      .count = 8,
                                      .segment = 24,
                                      .ranks_per_host = 2,
                                      .parts = {{0, 2}, {2, 4}, {4, 6}, {6, 8}},
                                      .send_elements = {8, 8, 8, 8},
                                      .recv_elements = {8, 8, 8, 8}};
      const Description task{.operation = operation,
                             .dtype = Dtype::kF32,
                             .count = 8,
                             .group_size = 4,
                             .order = Order::kAny};
      SCOPED_TRACE(std::string(entry->name) + " of " + std::string(to_text(operation)));
      if (is_eligible(entry->algorithm, task, 2)) {
        EXPECT_FALSE(make_schedule(setting).steps.empty());
      } else {
        EXPECT_THAT(error_of_call([&] { make_schedule(setting); }).message(),
                    HasSubstr(std::string(entry->name) + " has no schedule of "));
      }
    }
  }
}

TEST(Eligible, HostsOfEqualSizeInARow) {
  EXPECT_EQ(common_ranks_per_host({0, 0, 1, 1, 5, 5}), 2);
  EXPECT_EQ(common_ranks_per_host({0, 0, 0}), 3);
  EXPECT_EQ(common_ranks_per_host({0, 0, 1}), 1);
  EXPECT_EQ(common_ranks_per_host({0, 1, 0, 1}), 1);
  EXPECT_EQ(common_ranks_per_host({0, 0, 1, 1, 0, 0}), 1);
  EXPECT_EQ(common_ranks_per_host({0, 0, 1, 2}), 1);
  EXPECT_EQ(common_ranks_per_host({}), 1);
}

}  // namespace
}  // namespace trireme::collectives::test
