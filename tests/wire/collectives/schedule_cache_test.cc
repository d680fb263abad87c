// A call that repeats one of the last ones makes no schedule, and no call gets another's.

#include <gtest/gtest.h>

#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/schedule/cache.h"

namespace trireme::collectives::test {
namespace {

class ScheduleCacheTest : public testing::Test {
 protected:
  /// What the cache gives, which must be what would be made.
  void get(const CollectiveSetting& setting) {
    EXPECT_EQ(cache.get(setting), make_schedule(setting));
  }

  int num_made = 0;
  ScheduleCache cache{[this](const CollectiveSetting& setting) {
    ++num_made;
    return make_schedule(setting);
  }};
};

CollectiveSetting sum_of_four(std::int64_t count) {
  return {.operation = Collective::kAllReduce,
          .num_ranks = 4,
          .rank = 1,
          .count = count,
          .segment = 16};
}

TEST_F(ScheduleCacheTest, AnEqualCallMakesNothing) {
  for (int i = 0; i < 3; ++i) get(sum_of_four(100));
  EXPECT_EQ(num_made, 1);
}

TEST_F(ScheduleCacheTest, EveryDifferenceCounts) {
  const CollectiveSetting sum = sum_of_four(96);
  const CollectiveSetting scatter{.operation = Collective::kReduceScatter,
                                  .num_ranks = 2,
                                  .count = 40,
                                  .segment = 16,
                                  .parts = {{0, 20}, {20, 40}}};
  const CollectiveSetting exchange{.operation = Collective::kAllToAll,
                                   .num_ranks = 2,
                                   .segment = 16,
                                   .send_elements = {1, 2},
                                   .recv_elements = {1, 3}};
  std::vector<CollectiveSetting> settings = {sum, scatter, exchange};
  const auto add = [&](CollectiveSetting other, auto change) {
    change(other);
    settings.push_back(other);
  };
  add(sum, [](CollectiveSetting& s) { s.operation = Collective::kReduce; });
  add(settings.back(), [](CollectiveSetting& s) { s.root = 1; });
  add(sum, [](CollectiveSetting& s) { s.algorithm = Algorithm::kRing; });
  add(sum, [](CollectiveSetting& s) { s.algorithm = Algorithm::kTwoLevel, s.ranks_per_host = 2; });
  add(sum, [](CollectiveSetting& s) { s.num_ranks = 3; });
  add(sum, [](CollectiveSetting& s) { s.rank = 2; });
  add(sum, [](CollectiveSetting& s) { s.count = 97; });
  add(sum, [](CollectiveSetting& s) { s.segment = 32; });
  add(sum, [](CollectiveSetting& s) { s.num_reducers = 1; });
  add(scatter, [](CollectiveSetting& s) { s.parts[0].end = 19; });
  add(exchange, [](CollectiveSetting& s) { s.send_elements[1] = 3; });
  add(exchange, [](CollectiveSetting& s) { s.recv_elements[1] = 2; });
  ASSERT_LE(settings.size(), ScheduleCache::kMaxKept);
  for (int round = 0; round < 2; ++round) {
    for (const CollectiveSetting& setting : settings) get(setting);
    EXPECT_EQ(num_made, std::ssize(settings));
  }
}

TEST_F(ScheduleCacheTest, TheOneThatWasNotUsedForLongestGoes) {
  constexpr int kMost = ScheduleCache::kMaxKept;
  for (int i = 0; i < kMost; ++i) get(sum_of_four(i));
  get(sum_of_four(0));
  get(sum_of_four(kMost));  // in place of the second
  EXPECT_EQ(num_made, kMost + 1);
  get(sum_of_four(0));
  get(sum_of_four(2));
  EXPECT_EQ(num_made, kMost + 1);
  get(sum_of_four(1));
  EXPECT_EQ(num_made, kMost + 2);
}

TEST_F(ScheduleCacheTest, WhatCannotBeMadeIsNotKept) {
  const CollectiveSetting none{.operation = Collective::kBarrier, .algorithm = Algorithm::kRing};
  for (int i = 1; i <= 2; ++i) {
    EXPECT_THROW(cache.get(none), Error);
    EXPECT_EQ(num_made, i);
  }
}

}  // namespace
}  // namespace trireme::collectives::test
