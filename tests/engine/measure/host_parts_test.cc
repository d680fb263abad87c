#include "trireme/engine/measure/host_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/error.h"

namespace trireme::measure {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

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

TEST(HostPartsTest, NumbersOfCoresMayHaveHoles) {
  topology::Topology topology{{{"a", 4, 1 << 30}}, {{0, {1}, 1 << 20}}};
  add_parts({.numa_nodes = {{0, {0, 1, 8, 9}, 1 << 29}}, .devices = {}}, topology.hosts[0]);
  EXPECT_EQ(topology.hosts[0].num_cores, 10);
  EXPECT_NO_THROW(topology::check(topology));
  add_parts({.numa_nodes = {{0, {0, 1}, 1 << 29}}, .devices = {}}, topology.hosts[0]);
  EXPECT_EQ(topology.hosts[0].num_cores, 10) << "never fewer than before";
}

TEST(HostPartsTest, GpusAreWhatComputes) {
  constexpr unsigned kNvidia = 0x10de, kAspeed = 0x1a03, kHuawei = 0x19e5;
  EXPECT_TRUE(is_gpu(0x0302, kNvidia));
  EXPECT_TRUE(is_gpu(0x0300, kNvidia));
  EXPECT_TRUE(is_gpu(0x0380, 0x1002));
  EXPECT_TRUE(is_gpu(0x1200, kHuawei));
  EXPECT_FALSE(is_gpu(0x0300, kAspeed)) << "the console of a server";
  EXPECT_FALSE(is_gpu(0x0200, kNvidia)) << "a network card";
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

}  // namespace
}  // namespace trireme::measure
