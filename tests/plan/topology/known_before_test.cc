#include "trireme/plan/topology/known_before.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::topology {
namespace {

Topology bare() {
  return {{{"a", 2, 1024}, {"b", 2, 1024}}, {{0, {0}, 64}, {0, {1}, 64}, {1, {0}, 64}}};
}

/// With what `profile` and `topology detect` measure.
Topology full() {
  Topology topology = bare();
  topology.ranks[1].speed = 0.5;
  topology.shared_links = {{"network of a", {0, 1}, 10}};
  topology.hosts[1].num_cores = 6;  // One of them has the number 5.
  topology.hosts[1].numa_nodes = {{0, {0, 5}, 512}};
  topology.hosts[1].devices = {{"eth0", HostDeviceKind::kNetwork, 0, 12.5}};
  return topology;
}

TEST(KnownBefore, WhatOneMeasuresTheOtherKeeps) {
  const Topology speeds = with_speeds_and_own_links_of(full(), bare()),
                 both = with_links_and_parts_of(full(), speeds);
  EXPECT_EQ(speeds.ranks[1].speed, 0.5);
  EXPECT_EQ(speeds.shared_links, full().shared_links) << "it may have been added by hand";
  EXPECT_EQ(both, full());
  EXPECT_NO_THROW(check(both));
  EXPECT_EQ(with_links_and_parts_of(full(), bare()).ranks, bare().ranks);
}

TEST(KnownBefore, OfOtherPlacesNothingIsKept) {
  const auto keeps_nothing = [](const Topology& found) {
    return with_speeds_and_own_links_of(full(), found) == found &&
           with_links_and_parts_of(full(), found) == found;
  };
  EXPECT_FALSE(keeps_nothing(bare()));
  Topology other = bare();
  other.hosts[0].name = "c";
  EXPECT_TRUE(keeps_nothing(other));
  other = bare();
  other.ranks[1].host = 1;
  EXPECT_TRUE(keeps_nothing(other));
  other = bare();
  other.ranks[2].threads = 2;
  EXPECT_TRUE(keeps_nothing(other));
  other = bare();
  other.ranks.pop_back();
  EXPECT_TRUE(keeps_nothing(other));
}

TEST(KnownBefore, LinksThatAreFoundAgainAreNew) {
  Topology found = bare();
  found.shared_links = {{"network of a", {0, 1}, 5}};
  Topology before = full();
  before.shared_links.push_back({"rack", {0, 1, 2}, 40});
  const Topology both = with_speeds_and_own_links_of(before, found);
  ASSERT_EQ(both.shared_links.size(), 2U);
  EXPECT_EQ(both.shared_links[0].gb_per_s, 5);
  EXPECT_EQ(both.shared_links[1].name, "rack");
}

TEST(KnownBefore, AFileThatIsNoTopologyIsNotWrittenOver) {
  const std::string path = testing::TempDir() + "known_before_" + std::to_string(getpid());
  EXPECT_EQ(load_if_any(path), Topology());
  std::ofstream(path) << "{}";
  EXPECT_THROW(load_if_any(path), Error);
  save(full(), path);
  EXPECT_EQ(load_if_any(path), full());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trireme::topology
