// Every generator makes schedules that check_schedules accepts, for every rank count and size, and
// it refuses those that are broken.

#include "trireme/wire/collectives/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/wire/collectives/schedules.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/collectives/schedule/algorithms.h"
#include "trireme/wire/collectives/schedule/check.h"

namespace trireme::collectives::test {
namespace {

using enum Algorithm;
using enum Collective;
using testing::HasSubstr;
using transport::test::error_of_call;

void expect_all_reduce(Algorithm algorithm, Bits bits) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const std::int64_t count : kCounts) {
      SCOPED_TRACE(std::to_string(count) + " elements");
      const CollectiveSetting setting{.operation = kAllReduce, .algorithm = algorithm};
      expect_right(schedules_of(n, count, setting), all_reduce_goal(n, count, bits));
    }
  }
}

TEST(Schedules, OneShotAndTwoHopRoundOnce) {
  expect_all_reduce(kOneShot, Bits::kRoundedOnce);
  expect_all_reduce(kTwoHop, Bits::kRoundedOnce);
}

TEST(Schedules, ReducersSumForTheOthersAndGiveNothing) {
  for (int with_data = 2; with_data <= 9; ++with_data) {
    for (int reducers = 1; reducers <= 9; ++reducers) {
      for (const std::int64_t count : kCounts) {
        SCOPED_TRACE(std::to_string(reducers) + " reducers, " + std::to_string(count));
        const int n = with_data + reducers;
        const auto schedules =
            schedules_of(n, count, {.operation = kAllReduce, .num_reducers = reducers});
        expect_right(schedules, all_reduce_goal(n, count, Bits::kRoundedOnce, reducers));
      }
    }
  }
}

// With as many reducers as others each link carries the data once in each direction: without, up to
// twice.
TEST(Schedules, ReducersCarryAsMuchAsTheOthers) {
  const std::int64_t count = 1 << 17;
  for (const auto& [with_data, reducers, most] :
       {std::tuple{4, 1, 4.0 / 3}, {4, 2, 12.0 / 10}, {4, 4, 1.0}, {8, 2, 1 + 6.0 * 3 / 38}}) {
    const auto schedules = schedules_of(with_data + reducers, count,
                                        {.operation = kAllReduce, .num_reducers = reducers});
    for (const CollectiveSchedule& schedule : schedules) {
      std::int64_t sent = 0, received = 0;
      for (const Step& step : schedule.steps) {
        if (step.kind == StepKind::kSend) sent += step.sources.front().size();
        if (step.kind == StepKind::kRecv) received += step.target.size();
      }
      for (const std::int64_t moved : {sent, received}) {
        EXPECT_NEAR(static_cast<double>(moved) / static_cast<double>(count), most, 0.01)
            << with_data << " and " << reducers;
      }
    }
  }
}

TEST(Schedules, HalvingDoublingIsTheTreeForEveryRankCount) {
  expect_all_reduce(kHalvingDoubling, Bits::kTree);
}

TEST(Schedules, ARingHasOneOrderPerElement) {
  expect_all_reduce(kRing, Bits::kAny);
  const CollectiveGoal canonical = all_reduce_goal(4, 100, Bits::kTree);
  const std::vector<CollectiveSchedule> ring =
      schedules_of(4, 100, {.operation = kAllReduce, .algorithm = kRing});
  EXPECT_THAT(error_of_call([&] { check_schedules(ring, canonical); }).message(),
              HasSubstr("ends as (((1:0+2:0)+3:0)+0:0)"));
}

TEST(Schedules, RootedOnesForEveryRoot) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const std::int64_t count : kCounts) {
      for (const int root : {0, n / 2, n - 1}) {
        SCOPED_TRACE(std::to_string(count) + " elements, root " + std::to_string(root));
        for (const Algorithm by : {kOneShot, kTwoHop}) {
          expect_right(
              schedules_of(n, count, {.operation = kReduce, .algorithm = by, .root = root}),
              reduce_goal(n, count, root));
          expect_right(
              schedules_of(n, count, {.operation = kBroadcast, .algorithm = by, .root = root}),
              broadcast_goal(n, count, root));
        }
      }
    }
  }
}

TEST(Schedules, PartsOfAnySize) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    for (const std::int64_t count : kCounts) {
      for (const std::uint64_t seed : {1, 2, 3}) {
        const std::vector<Chunk> parts = random_parts(n, count, seed * 1000 + n);
        SCOPED_TRACE(std::to_string(count) + " elements, seed " + std::to_string(seed));
        for (const Algorithm by : {kTwoHop, kRing}) {
          const Bits bits = by == kRing ? Bits::kAny : Bits::kRoundedOnce;
          expect_right(schedules_of(n, count,
                                    {.operation = kReduceScatter, .algorithm = by, .parts = parts}),
                       reduce_scatter_goal(count, parts, bits));
          expect_right(
              schedules_of(n, count, {.operation = kAllGather, .algorithm = by, .parts = parts}),
              all_gather_goal(count, parts));
        }
      }
    }
  }
}

TEST(Schedules, AllToAllOfAnySizes) {
  std::mt19937_64 random(7);
  for (int n = 1; n <= kMaxRanks; ++n) {
    std::vector<std::vector<std::int64_t>> elements(n, std::vector<std::int64_t>(n));
    for (auto& row : elements) {
      for (std::int64_t& size : row) size = random() % 3 == 0 ? 0 : random() % 40;
    }
    const SettingOf setting_of = [&](int rank) {
      CollectiveSetting setting{.operation = kAllToAll, .send_elements = elements[rank]};
      for (const auto& row : elements) setting.recv_elements.push_back(row[rank]);
      return setting;
    };
    expect_right(schedules_of(n, 0, setting_of), all_to_all_goal(elements));
  }
}

TEST(Schedules, BarriersHearOfEveryRank) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    expect_right(schedules_of(n, 1, {.operation = kBarrier}), barrier_goal(n));
  }
}

TEST(Schedules, HaveATextForm) {
  const CollectiveSetting setting{
      .operation = kAllReduce, .num_ranks = 2, .count = 40, .segment = 16};
  EXPECT_EQ(to_text(make_schedule(setting)),
            "0: send data[16, 32) to 1\n"
            "1: send data[32, 40) to 1\n"
            "2: recv scratch[0, 16) from 1\n"
            "3: reduce data[0, 16) = data[0, 16), scratch[0, 16) after 2\n"
            "4: send data[0, 16) to 1 after 3\n"
            "5: recv data[16, 32) from 1 after 0\n"
            "6: recv data[32, 40) from 1 after 1\n");
}

// ---- Broken ones

class BrokenSchedule : public testing::Test {
 protected:
  void expect_refused(const std::string& problem) {
    const Error error = error_of_call([&] { check_schedules(schedules, goal); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(problem));
  }

  std::vector<Step>& steps(int rank) { return schedules[rank].steps; }

  std::vector<CollectiveSchedule> schedules = schedules_of(2, 40, {.operation = kAllReduce});
  CollectiveGoal goal = all_reduce_goal(2, 40, Bits::kRoundedOnce);
};

TEST_F(BrokenSchedule, IsRightBefore) { expect_right(schedules, goal); }

TEST_F(BrokenSchedule, ReceivesIntoWhatIsBeingSent) {
  ASSERT_EQ(steps(0)[4].kind, StepKind::kRecv);
  steps(0)[4].after.clear();
  expect_refused("rank 0 is wrong: step 4 (recv data[16, 40) from 1) may run while step 0 (send");
}

TEST_F(BrokenSchedule, SendsBeforeTheReduce) {
  ASSERT_EQ(steps(0)[3].kind, StepKind::kSend);
  steps(0)[3].after.clear();
  expect_refused("step 3 (send data[0, 16) to 1) may run while step 2 (reduce");
}

TEST_F(BrokenSchedule, LacksARecv) {
  steps(1).pop_back();
  expect_refused("rank 0 is wrong: step 3 (send data[0, 16) to 1 after 2) never ends");
}

TEST_F(BrokenSchedule, HasOtherSizes) {
  steps(1).back().target.end -= 1;
  expect_refused("meets step 4 (recv data[0, 15) from 0");
}

TEST_F(BrokenSchedule, WaitsInACircle) {
  for (const int rank : {0, 1}) {
    ScheduleBuilder builder;
    const Range data{Place::kData, 0, 40};
    const Range other = builder.scratch(40);
    builder.recv(1 - rank, other);
    builder.copy(data, other);
    builder.send(1 - rank, data);
    schedules[rank] = builder.take();
  }
  expect_refused("never ends: a deadlock");
}

TEST_F(BrokenSchedule, SwapsSources) {
  std::swap(steps(1)[2].sources[0], steps(1)[2].sources[1]);
  expect_refused("takes 1:16 for an element of rank 0");
}

TEST_F(BrokenSchedule, ReadsUnwrittenScratch) {
  schedules[0].scratch_elements += 16;
  steps(0)[2].sources[1] = {Place::kScratch, 16, 32};
  expect_refused("reads what nothing has written");
}

TEST_F(BrokenSchedule, NamesWhatIsNotThere) {
  const std::vector<CollectiveSchedule> right = schedules;
  const auto expect = [&](const std::function<void(Step&)>& damage, const std::string& problem) {
    schedules = right;
    damage(steps(0)[2]);
    expect_refused(problem);
  };
  expect([](Step& step) { step.sources.clear(); }, "too many sources, or too few");
  expect([](Step& step) { step.target.end = 41; }, "memory that is not there or of other sizes");
  expect([](Step& step) { step.target = {Place::kData, 2, 18}; }, "writes a part of what it reads");
  expect([](Step& step) { step.after = {2}; }, "is after a later step");
  expect([](Step& step) { step.first_rank = 1; }, "takes 0:0 for an element of rank 1");
  schedules = right;
  steps(0)[0].peer = 2;
  expect_refused("has no such peer");
}

TEST_F(BrokenSchedule, ForgetsARank) {
  schedules = schedules_of(3, 1, {.operation = kBarrier});
  goal = barrier_goal(3);
  expect_right(schedules, goal);
  for (CollectiveSchedule& schedule : schedules) schedule.steps.resize(3);  // one round of two
  expect_refused("element 0 ends as (0:0+2:0)");
}

}  // namespace
}  // namespace trireme::collectives::test
