#include "trireme/engine/measure/detect_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/engine/measure/ranks.h"
#include "trireme/engine/measure/link_measure.h"
#include "trireme/error.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::measure {
namespace {

using testing::SizeIs;
using namespace std::chrono_literals;

TEST(DetectTopologyTest, OneRankHasItsHostForItself) {
  const topology::Topology found = detect_topology(BusyRanks(), {});
  ASSERT_THAT(found.hosts, SizeIs(1));
  ASSERT_THAT(found.ranks, SizeIs(1));
  EXPECT_EQ(found.hosts[0].name, host_name());
  EXPECT_EQ(found.ranks[0].memory_bytes, found.hosts[0].memory_bytes);
  EXPECT_GE(found.ranks[0].memory_bytes, std::int64_t{64} << 20);
}

TEST(DetectTopologyTest, RanksOfAHostShareItAndAgree) {
  std::array<topology::Topology, 2> found;
  run_ranks(2, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    found[endpoint.rank()] = detect_topology(ranks, {});
  });
  EXPECT_EQ(found[0], found[1]);
  ASSERT_THAT(found[0].hosts, SizeIs(1));
  ASSERT_THAT(found[0].ranks, SizeIs(2));
  EXPECT_EQ(found[0].ranks[1].memory_bytes, found[0].hosts[0].memory_bytes / 2);
  EXPECT_THAT(topology::shared_cores(found[0]), SizeIs(1));
}

TEST(DetectTopologyTest, MemoryOfADeviceCanBeGiven) {
  run_ranks(2, [](transport::Endpoint&, const BusyRanks& ranks) {
    const auto found = detect_topology(ranks, {.device_memory_bytes = 12345});
    EXPECT_EQ(found.ranks[0].memory_bytes, 12345);
    EXPECT_EQ(found.ranks[1].memory_bytes, 12345);
  });
}

TEST(LinkMeasureTest, TimesAreTheSameOnAllRanksAndGrowWithTheSize) {
  for (const int num_ranks : {2, 3}) {
    std::vector<MeasuredLinks> costs(num_ranks);
    run_ranks(num_ranks, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
      // The last takes longer than a busy machine lets a thread wait for its turn.
      const LinkOptions options{
          .sizes = {64, 1 << 20, 96 << 20}, .max_round_trips = 5, .long_time = 10s};
      costs[endpoint.rank()] = measure_links(endpoint, ranks, options);
    });
    for (const MeasuredLinks& found : costs) {
      EXPECT_EQ(found.tables, costs[0].tables);
      EXPECT_EQ(found.work, costs[0].work);
    }
    ASSERT_THAT(costs[0].work, SizeIs(3));
    for (const profile::MessageWork& work : costs[0].work) EXPECT_GT(work.us, 0) << work.bytes;
    EXPECT_LT(costs[0].work[1].us, 1e4);
    EXPECT_GT(costs[0].work[2].us, costs[0].work[0].us);
    ASSERT_THAT(costs[0].tables, SizeIs(1));
    const profile::LinkTable& table = costs[0].tables[0];
    EXPECT_EQ(table.kind, profile::LinkKind::kHost);
    ASSERT_THAT(table.times, SizeIs(3));
    for (const profile::LinkTime& time : table.times) {
      EXPECT_GT(time.alone_us, 0);
      EXPECT_GT(time.beside_compute_us, 0);
      EXPECT_LT(time.alone_us, 1e7);
      EXPECT_LT(time.beside_compute_us, 1e7);
    }
    EXPECT_LT(table.times[0].alone_us, table.times[2].alone_us);
  }
}

// `profile` and self-planned training worked on one host only.
TEST(LinkMeasureTest, LinksBetweenHostsAreMeasuredToo) {
  const std::vector<std::string> hosts = {"a", "b", "b", "a"};
  std::vector<MeasuredLinks> costs(hosts.size());
  run_ranks(4, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    const LinkOptions options{
        .host = hosts[endpoint.rank()], .sizes = {64, 1 << 20}, .max_round_trips = 5};
    costs[endpoint.rank()] = measure_links(endpoint, ranks, options);
  });
  for (const MeasuredLinks& found : costs) EXPECT_EQ(found.tables, costs[0].tables);
  ASSERT_THAT(costs[0].tables, SizeIs(2));
  EXPECT_EQ(costs[0].tables[0].kind, profile::LinkKind::kHost);
  EXPECT_EQ(costs[0].tables[1].kind, profile::LinkKind::kNetwork);
  for (const profile::LinkTable& table : costs[0].tables) {
    EXPECT_GT(table.times[0].alone_us, 0);
    EXPECT_GT(table.times[1].beside_compute_us, 0);
  }
}

TEST(LinkMeasureTest, OneRankOfEachHostHasNoLinkOfAHost) {
  run_ranks(2, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    const std::string host = endpoint.rank() == 0 ? "a" : "b";
    const auto tables = measure_links(endpoint, ranks, {.host = host, .sizes = {64}}).tables;
    ASSERT_THAT(tables, SizeIs(1));
    EXPECT_EQ(tables[0].kind, profile::LinkKind::kNetwork);
  });
}

// Links of 100 Mbit/s were measured for 80 s, most of that by messages of 4 and 16 MiB.
TEST(LinkMeasureTest, OnASlowLinkLargeMessagesAreLeftOut) {
  run_ranks(3, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    const LinkOptions options{.sizes = {64, 64 << 10, 1 << 20, 4 << 20, 16 << 20},
                              .min_round_trips = 1,
                              .max_round_trips = 2,
                              .long_time = 0ms};
    const MeasuredLinks links = measure_links(endpoint, ranks, options);
    ASSERT_THAT(links.tables[0].times, SizeIs(3));
    EXPECT_EQ(links.tables[0].times.back().bytes, 1 << 20);
    EXPECT_THAT(links.work, SizeIs(3));
  });
}

TEST(LinkMeasureTest, WhatTakesLongIsTimedFewTimes) {
  const auto trips = [](std::int64_t bytes, double last_us) {
    return round_trips_of(bytes, profile::LinkTime{bytes / 4, last_us, last_us}, {});
  };
  EXPECT_EQ(round_trips_of(64, {}, {}), 100);
  EXPECT_EQ(trips(256, 40), 100);
  EXPECT_EQ(trips(1 << 20, 100), 64);      // 64 MiB
  EXPECT_EQ(trips(256 << 10, 3'000), 20);  // 24 ms each, half a second
  EXPECT_EQ(trips(1 << 20, 20'000), 5);    // 160 ms each
  EXPECT_EQ(trips(16 << 20, 1'000), 5);    // 64 MiB
  EXPECT_EQ(trips(64, 0), 100);
}

// Waits had deadlines of their own, 10 min and 1 min, whatever the world's was.
TEST(LinkMeasureTest, ARankThatDoesNotComeIsNamedAtTheWorldsDeadline) {
  const auto endpoints = transport::make_sim_world(2);
  collectives::Group group(*endpoints[0], {0, 1}, {.name = "all", .deadline = 100ms});
  const BusyRanks ranks(group, {.deadline = 100ms});
  try {
    ranks.barrier();
    ADD_FAILURE() << "rank 1 is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.message(), testing::HasSubstr("waited 100 ms for rank 1"));
  }
}

TEST(LinkMeasureTest, AMessageThatDoesNotComeEndsTheWorld) {
  try {
    run_ranks(2, 500ms, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
      if (endpoint.rank() == 0) {
        measure_links(endpoint, ranks, {.sizes = {64}});
      } else {
        ranks.gather(host_name());
        ranks.barrier();
        std::byte byte;  // and no answers
        endpoint.recv(0, 1, [&](std::size_t) { return std::span(&byte, 1); })->wait_for(20s);
      }
    });
    ADD_FAILURE() << "rank 1 gives no answers";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.message(), testing::HasSubstr("'message of the profile' for rank 1"));
  }
}

TEST(LinkMeasureTest, OneRankHasNoLinks) {
  run_ranks(1, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    EXPECT_THAT(measure_links(endpoint, ranks, {}).tables, SizeIs(0));
  });
}

}  // namespace
}  // namespace trireme::measure
