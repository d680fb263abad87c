#include "trireme/engine/measure/host_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include "tests/engine/measure/ranks.h"
#include "trireme/engine/measure/card_measure.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/error.h"

namespace trireme::measure {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST(HostPartsTest, SocketsAndMemoriesOfAMachineInWords) {
  const HostParts parts = host_parts("pack:2 [numa(memory=8GB)] core:2 pu:2");
  ASSERT_THAT(parts.numa_nodes, SizeIs(2));
  EXPECT_EQ(parts.numa_nodes[0].socket, 0);
  EXPECT_THAT(parts.numa_nodes[0].cores, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(parts.numa_nodes[1].socket, 1);
  EXPECT_THAT(parts.numa_nodes[1].cores, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(parts.numa_nodes[1].memory_bytes, 8'000'000'000);
  EXPECT_THAT(parts.devices, SizeIs(0));
  EXPECT_THROW(host_parts("pack:two"), Error);
}

/// Every core that this process may use is near to some memory, and to one alone.
TEST(HostPartsTest, TheCoresOfThisMachineAreInItsNodes) {
  const HostFacts facts = host_facts();
  std::multiset<int> cores;
  std::int64_t memory = 0;
  for (const topology::NumaNode& node : host_parts().numa_nodes) {
    cores.insert(node.cores.begin(), node.cores.end());
    memory += node.memory_bytes;
  }
  for (const int core : facts.cores) EXPECT_EQ(cores.count(core), 1U) << core;
  EXPECT_GE(memory, facts.memory_bytes);
}

TEST(HostPartsTest, TopologiesHaveThemWhereTheyAreAskedFor) {
  EXPECT_THAT(detect_topology(BusyRanks(), {}).hosts[0].numa_nodes, SizeIs(0));
  const auto found = detect_topology(BusyRanks(), {.with_parts = true});
  EXPECT_EQ(found.hosts[0].numa_nodes, host_parts().numa_nodes);
  EXPECT_EQ(found.hosts[0].devices, host_parts().devices);
}

/// Hosts of two, one and three ranks: all send, and all know what each host has sent.
TEST(CardMeasureTest, WhatHostsSendAtOnceIsTheSameOnAllRanks) {
  topology::Topology topology;
  for (const char* host : {"a", "b", "c"}) topology.hosts.push_back({host, 4, 1 << 30});
  for (const int host : {0, 1, 2, 0, 2, 2}) topology.ranks.push_back({host, {0}, 1 << 20});
  std::array<std::vector<double>, 6> found;
  run_ranks(6, [&](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    found[endpoint.rank()] = measure_cards(
        endpoint, ranks, topology, {.message_bytes = 64 << 10, .max_messages = 3, .time = 5ms});
  });
  ASSERT_THAT(found[0], SizeIs(3));
  for (const std::vector<double>& one : found) EXPECT_EQ(one, found[0]);
  for (const double gb_per_s : found[0]) {
    EXPECT_GT(gb_per_s, 1e-6);
    EXPECT_LT(gb_per_s, 1e4);
  }
}

TEST(CardMeasureTest, OneHostHasNoNetwork) {
  run_ranks(2, [](transport::Endpoint& endpoint, const BusyRanks& ranks) {
    const topology::Topology topology = detect_topology(ranks, {});
    EXPECT_THAT(measure_cards(endpoint, ranks, topology), SizeIs(0));
  });
}

}  // namespace
}  // namespace trireme::measure
