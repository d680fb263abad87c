// Schedules of two_level: proven for hosts of many shapes, and what leaves a host counted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "tests/wire/collectives/schedules.h"
#include "tests/wire/endpoint/ranks.h"

namespace trireme::collectives::test {
namespace {

using enum Algorithm;
using enum Collective;
using testing::HasSubstr;
using transport::test::error_of_call;

/// Several hosts of several ranks each.
struct HostShape {
  int num_hosts;
  int per_host;
  int num_ranks() const { return num_hosts * per_host; }
  /// Whether the ranks of a host are a subtree of THE tree.
  bool is_subtree() const { return std::has_single_bit(static_cast<unsigned>(per_host)); }
};

std::vector<HostShape> host_shapes() {
  std::vector<HostShape> shapes;
  for (int hosts = 2; hosts <= kMaxRanks; ++hosts) {
    for (int per_host = 2; hosts * per_host <= kMaxRanks; ++per_host) {
      shapes.push_back({hosts, per_host});
    }
  }
  return shapes;
}

/// Calls `check` for all of them and every count, with the setting but for operation and parts.
void for_hosts(
    const std::function<void(const HostShape&, std::int64_t, CollectiveSetting)>& check) {
  for (const HostShape& shape : host_shapes()) {
    for (const std::int64_t count : kCounts) {
      SCOPED_TRACE(std::to_string(shape.num_hosts) + " hosts of " + std::to_string(shape.per_host) +
                   ", count " + std::to_string(count));
      check(shape, count, {.algorithm = kTwoLevel, .ranks_per_host = shape.per_host});
    }
  }
}

TEST(TwoLevel, SumsRoundOnceWhereHostsAreSubtrees) {
  for_hosts([](const HostShape& shape, std::int64_t count, CollectiveSetting setting) {
    const int n = shape.num_ranks();
    const Bits bits = shape.is_subtree() ? Bits::kRoundedOnce : Bits::kAny;
    setting.operation = kAllReduce;
    expect_right(schedules_of(n, count, setting), all_reduce_goal(n, count, bits));
    setting.operation = kReduceScatter;
    setting.parts = random_parts(n, count, 1000 + n);
    expect_right(schedules_of(n, count, setting), reduce_scatter_goal(count, setting.parts, bits));
    setting.operation = kReduce;
    for (const int root : {0, shape.per_host, n - 1}) {
      setting.root = root;
      expect_right(schedules_of(n, count, setting), reduce_goal(n, count, root, bits));
    }
  });
}

TEST(TwoLevel, MovesOfAnyPartsAndRoots) {
  for_hosts([](const HostShape& shape, std::int64_t count, CollectiveSetting setting) {
    const int n = shape.num_ranks();
    setting.operation = kAllGather;
    setting.parts = random_parts(n, count, 2000 + n);
    expect_right(schedules_of(n, count, setting), all_gather_goal(count, setting.parts));
    setting.operation = kBroadcast;
    for (const int root : {0, shape.per_host, n - 1}) {
      setting.root = root;
      expect_right(schedules_of(n, count, setting), broadcast_goal(n, count, root));
    }
  });
}

TEST(TwoLevel, BarriersHearOfEveryRank) {
  for (const HostShape& shape : host_shapes()) {
    SCOPED_TRACE(std::to_string(shape.num_hosts) + " hosts of " + std::to_string(shape.per_host));
    expect_right(
        schedules_of(
            shape.num_ranks(), 1,
            {.operation = kBarrier, .algorithm = kTwoLevel, .ranks_per_host = shape.per_host}),
        barrier_goal(shape.num_ranks()));
  }
}

TEST(TwoLevel, EqualPartsGoInBundles) {
  for (int hosts = 2; hosts <= 5; ++hosts) {
    for (int per_host = 2; per_host <= 4; ++per_host) {
      for (const std::int64_t part : {1, 7}) {
        const int n = hosts * per_host;
        SCOPED_TRACE(std::to_string(hosts) + " hosts of " + std::to_string(per_host));
        const std::vector<CollectiveSchedule> schedules = schedules_of(
            n, part, {.operation = kAllToAll, .algorithm = kTwoLevel, .ranks_per_host = per_host});
        const std::vector<std::int64_t> row(n, part);
        expect_right(schedules, all_to_all_goal(std::vector(n, row)));
        const auto num_sends = std::ranges::count(schedules[0].steps, StepKind::kSend, &Step::kind);
        EXPECT_EQ(num_sends, per_host - 1 + hosts - 1);
      }
    }
  }
}

/// By host: elements that leave it and elements that come in, over messages to other hosts.
struct HostTraffic {
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> in;
};

HostTraffic traffic_of(const std::vector<CollectiveSchedule>& schedules, int per_host) {
  const std::size_t num_hosts = schedules.size() / per_host;
  HostTraffic traffic{std::vector<std::int64_t>(num_hosts), std::vector<std::int64_t>(num_hosts)};
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
    for (const Step& step : schedules[rank].steps) {
      const std::size_t from = rank / per_host;
      const std::size_t to = static_cast<std::size_t>(step.peer) / per_host;
      if (step.kind != StepKind::kSend || from == to) continue;
      traffic.out[from] += step.sources.front().size();
      traffic.in[to] += step.sources.front().size();
    }
  }
  return traffic;
}

HostTraffic traffic_of(const HostShape& shape, std::int64_t count, CollectiveSetting setting) {
  setting.algorithm = kTwoLevel;
  setting.ranks_per_host = shape.per_host;
  return traffic_of(schedules_of(shape.num_ranks(), count, setting), shape.per_host);
}

/// Equal chunks of whole units, so that what leaves can be told exactly.
std::vector<Chunk> equal_parts(int num_ranks, std::int64_t each) {
  std::vector<Chunk> parts;
  for (int rank = 0; rank < num_ranks; ++rank) parts.push_back({rank * each, (rank + 1) * each});
  return parts;
}

// What a host has leaves once for each other host, whatever the number of its ranks.
TEST(TwoLevel, PartsLeaveAHostOnceForEachOther) {
  constexpr std::int64_t kPart = 32;
  for (const HostShape& shape : {HostShape{2, 2}, {2, 4}, {3, 2}, {4, 4}}) {
    const int n = shape.num_ranks();
    const std::int64_t of_host = kPart * shape.per_host;
    const std::vector<std::int64_t> once(shape.num_hosts, of_host * (shape.num_hosts - 1));
    const std::vector<Chunk> parts = equal_parts(n, kPart);
    for (const Collective operation : {kAllGather, kReduceScatter}) {
      const HostTraffic traffic =
          traffic_of(shape, kPart * n, {.operation = operation, .parts = parts});
      EXPECT_EQ(traffic.out, once) << to_text(operation);
      EXPECT_EQ(traffic.in, once) << to_text(operation);
    }
    const HostTraffic sums = traffic_of(shape, kPart * n, {.operation = kAllReduce});
    for (const std::int64_t elements : sums.out) EXPECT_EQ(elements, 2 * once[0]);
  }
}

// The link of the root's host carries the data once, and so at most does each other one.
TEST(TwoLevel, RootedOnesCrossTheRootsLinkOnce) {
  constexpr std::int64_t kCount = 16 * 3 * 4 * 8;
  for (const HostShape& shape : {HostShape{2, 2}, {2, 4}, {3, 2}, {4, 4}, {3, 3}}) {
    for (const int root : {0, shape.num_ranks() - 1}) {
      SCOPED_TRACE(std::to_string(shape.num_hosts) + " hosts, root " + std::to_string(root));
      const int host = root / shape.per_host;
      const HostTraffic given = traffic_of(shape, kCount, {.operation = kBroadcast, .root = root});
      EXPECT_EQ(given.out[host], kCount);
      EXPECT_EQ(given.in[host], 0);
      const HostTraffic taken = traffic_of(shape, kCount, {.operation = kReduce, .root = root});
      EXPECT_EQ(taken.in[host], kCount);
      for (const HostTraffic& traffic : {given, taken}) {
        for (const std::int64_t elements : traffic.out) EXPECT_LE(elements, kCount);
        for (const std::int64_t elements : traffic.in) EXPECT_LE(elements, kCount);
      }
    }
  }
}

TEST(TwoLevel, BarriersWaitForTheNetworkAsOftenAsThereAreHostsToHearOf) {
  for (const HostShape& shape : {HostShape{2, 8}, {4, 4}, {5, 3}}) {
    const auto schedules = schedules_of(
        shape.num_ranks(), 1,
        {.operation = kBarrier, .algorithm = kTwoLevel, .ranks_per_host = shape.per_host});
    const std::int64_t rounds = std::bit_width(static_cast<unsigned>(shape.num_hosts) - 1);
    for (const std::int64_t messages : traffic_of(schedules, shape.per_host).out) {
      EXPECT_EQ(messages, rounds * shape.per_host);
    }
  }
}

// ---- Broken ones

class BrokenTwoLevel : public testing::Test {
 protected:
  void expect_refused(const std::function<void(Step&)>& damage, const std::string& problem) {
    schedules = right;
    damage(first_reduce());
    const Error error = error_of_call([&] { check_schedules(schedules, goal); });
    EXPECT_THAT(error.message(), HasSubstr(problem));
  }

  /// Of rank 3, into partial results.
  Step& first_reduce() {
    return *std::ranges::find(schedules[3].steps, StepKind::kReduce, &Step::kind);
  }

  const std::vector<CollectiveSchedule> right =
      schedules_of(4, 100, {.operation = kAllReduce, .algorithm = kTwoLevel, .ranks_per_host = 2});
  const CollectiveGoal goal = all_reduce_goal(4, 100, Bits::kRoundedOnce);
  std::vector<CollectiveSchedule> schedules;
};

TEST_F(BrokenTwoLevel, TakesTheScalesOfOtherRanks) {
  expect_right(right, goal);
  expect_refused([](Step& step) { step.first_rank = 0; }, "for an element of rank 0");
}

TEST_F(BrokenTwoLevel, LosesAPartialResult) {
  expect_refused(
      [&](Step& step) {
        step.target = {Place::kScratch, schedules[3].scratch_elements,
                       schedules[3].scratch_elements + step.target.size()};
        schedules[3].scratch_elements += step.target.size();
      },
      "reads what nothing has written");
}

TEST_F(BrokenTwoLevel, TakesPartialResultsForElements) {
  constexpr const char* kProblem = "takes partial results for elements, or elements for them";
  expect_refused([](Step& step) { step.sources[0].place = Place::kPartial; }, kProblem);
  expect_refused([](Step& step) { step.kind = StepKind::kCopy, step.sources.resize(1); }, kProblem);
  expect_refused(
      [](Step& step) {
        for (Range& source : step.sources) source.place = Place::kPartial;
      },
      kProblem);
}

TEST(BrokenPartials, MeetElements) {
  std::vector<CollectiveSchedule> schedules;
  for (const int rank : {0, 1}) {
    ScheduleBuilder builder;
    const Range partial = builder.partial(1);
    builder.reduce(partial, {{Place::kData, 0, 1}}, rank);
    builder.send(1 - rank, partial);
    builder.recv(1 - rank, builder.scratch(1));
    schedules.push_back(builder.take());
  }
  const CollectiveGoal goal = all_reduce_goal(2, 1, Bits::kRoundedOnce);
  EXPECT_THAT(
      error_of_call([&] { check_schedules(schedules, goal); }).message(),
      HasSubstr("step 1 (send partial[0, 1) to 1 after 0) meets step 2 (recv scratch[0, 1)"));
}

}  // namespace
}  // namespace trireme::collectives::test
