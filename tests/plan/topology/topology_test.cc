#include "trireme/plan/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "trireme/error.h"

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Topology two_hosts() {
  return {{{"a", 4, 8 * kGiB}, {"b", 2, 8 * kGiB}},
          {{0, {0}, kGiB}, {0, {1, 2}, kGiB}, {1, {0}, kGiB}}};
}

std::string complaint(const std::function<void(Topology&)>& change) {
  Topology topology = two_hosts();
  change(topology);
  try {
    check(topology);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(Topology, CheckNamesRankAndHost) {
  EXPECT_EQ(complaint([](Topology&) {}), "");
  EXPECT_EQ(complaint([](Topology& t) { t.ranks.clear(); }), "topology: it has no ranks");
  EXPECT_EQ(complaint([](Topology& t) { t.hosts[1].name = "a"; }),
            "topology: host 1 'a': its name is taken");
  EXPECT_EQ(complaint([](Topology& t) { t.hosts[1].num_cores = 0; }),
            "topology: host 1 'b': num_cores must be at least 1, got 0");
  EXPECT_THAT(complaint([](Topology& t) { t.hosts[0].memory_bytes = 0; }), HasSubstr("host 0 'a'"));
  EXPECT_EQ(complaint([](Topology& t) { t.ranks[2].host = 2; }),
            "topology: rank 2: there is no host 2, only 2");
  EXPECT_THAT(complaint([](Topology& t) { t.ranks[0].host = -1; }), HasSubstr("no host -1"));
  EXPECT_EQ(complaint([](Topology& t) { t.ranks[2].cores = {0, 2}; }),
            "topology: rank 2: 'b' has no core 2, only 2");
  EXPECT_EQ(complaint([](Topology& t) { t.ranks[2].cores = {}; }),
            "topology: rank 2: it has no cores on 'b'");
  EXPECT_THAT(complaint([](Topology& t) { t.ranks[1].cores = {2, 1}; }), HasSubstr("ascend"));
  EXPECT_THAT(complaint([](Topology& t) { t.ranks[1].cores = {1, 1}; }), HasSubstr("ascend"));
  EXPECT_THAT(complaint([](Topology& t) { t.ranks[1].memory_bytes = 0; }), HasSubstr("rank 1"));
}

TEST(Topology, RanksWithSeveralThreadsWantAsManyCores) {
  Topology topology{{{"a", 3, kGiB}}, {{0, {0, 1, 2}, kGiB}, {0, {0, 1, 2}, kGiB}}};
  EXPECT_EQ(shared_cores(topology), (std::vector<SharedCores>{{{0, 1}, 3, 3}}));
  for (RankPlace& rank : topology.ranks) rank.threads = 2;
  EXPECT_EQ(shared_cores(topology), (std::vector<SharedCores>{{{0, 1}, 3, 1.5}}));
  for (RankPlace& rank : topology.ranks) rank.threads = 8;
  EXPECT_EQ(shared_cores(topology), (std::vector<SharedCores>{{{0, 1}, 3, 1}}));
  EXPECT_THAT(show(topology), HasSubstr("rank 1: cores 0 1 2, 8 threads, 1.0 GiB"));
  EXPECT_EQ(complaint([](Topology& t) { t.ranks[1].threads = 0; }),
            "topology: rank 1: threads must be at least 1, got 0");
}

TEST(Topology, SpeedsAreOfPlausibleSize) {
  for (const double speed : {0.0, -1.0, 1e9, std::nan("")}) {
    EXPECT_THAT(complaint([&](Topology& t) { t.ranks[1].speed = speed; }),
                HasSubstr("topology: rank 1: speed must be between 0.001 and 1000, got"));
  }
  Topology topology{{{"a", 2, kGiB}}, {{0, {0}, kGiB}, {0, {1}, kGiB}}};
  topology.ranks[1].speed = 0.5;
  EXPECT_THAT(show(topology), HasSubstr("rank 1: cores 1, speed 0.5, 1.0 GiB"));
}

TEST(Topology, SharedLinksAndPartsOfHostsAreChecked) {
  const auto with_link = [](const SharedLink& link) {
    return complaint([&](Topology& t) { t.shared_links = {{"card", {0, 1}, 1}, link}; });
  };
  EXPECT_EQ(with_link({"rack", {2}, 12.5}), "");
  EXPECT_EQ(with_link({"rack", {}, 1}), "topology: shared link 1 'rack': it has no ranks");
  EXPECT_EQ(with_link({"rack", {3}, 1}),
            "topology: shared link 1 'rack': there is no rank 3, only 3");
  EXPECT_THAT(with_link({"rack", {1, 1}, 1}), HasSubstr("its ranks must ascend"));
  for (const double speed : {0.0, -1.0, 1e9, std::nan("")})
    EXPECT_THAT(with_link({"rack", {1}, speed}), HasSubstr("gb_per_s must be between"));
  EXPECT_THAT(complaint([](Topology& t) { t.hosts[1].numa_nodes = {{0, {0, 2}, kGiB}}; }),
              HasSubstr("host 1 'b': a NUMA node has a core that the host has not"));
  EXPECT_THAT(
      complaint([](Topology& t) { t.hosts[0].devices = {{"gpu0", HostDeviceKind::kGpu, 0}}; }),
      HasSubstr("'gpu0' is at a NUMA node that the host has not"));
}

TEST(Topology, MessagesPassALinkByWhereTheirRanksAre) {
  const SharedLink card{"card", {0}, 1, Passing::kNetwork};
  EXPECT_TRUE(card.passes(false));
  EXPECT_FALSE(card.passes(true));
  const SharedLink bridge{"switch", {0}, 1, Passing::kHost};
  EXPECT_FALSE(bridge.passes(false));
  EXPECT_TRUE(bridge.passes(true));
  const SharedLink both{"both", {0}, 1, Passing::kAll};
  EXPECT_TRUE(both.passes(false) && both.passes(true));
}

TEST(Topology, AnotherHostHasLinksOfItsOwn) {
  Topology topology = two_hosts();
  topology.shared_links = {{"card of a", {0, 1}, 1}, {"card of b", {2}, 1}, {"rack", {1, 2}, 4}};
  const Topology more = with_another_host(topology);
  check(more);
  EXPECT_EQ(more.shared_links, (std::vector<SharedLink>{{"card of a", {0, 1}, 1},
                                                        {"card of b", {2}, 1},
                                                        {"card of b again", {3}, 1},
                                                        {"rack", {1, 2, 3}, 4}}));
  EXPECT_EQ(with_another_rank(topology).shared_links[1].ranks, (std::vector<int>{2, 3}));
  EXPECT_EQ(with_another_rank(topology).shared_links[0].ranks, (std::vector<int>{0, 1}));
}

/// Each rank went through all others.
TEST(Topology, ALargeOneIsReadInTime) {
  Topology topology;
  topology.hosts = {{"a", 200'000, 1}};
  for (int rank = 0; rank < 200'000; ++rank) topology.ranks.push_back({0, {rank}, 1});
  for (int rank = 1; rank < 200'000; rank += 2) topology.ranks[rank].cores = {rank - 1, rank};
  EXPECT_EQ(shared_cores(topology).size(), 100'000U);
}

TEST(Topology, AnotherHostOrRankIsLikeTheLast) {
  Topology topology{{{"a", 2, 100}, {"b", 3, 90}}, {{0, {0}, 50}, {1, {0}, 40}, {1, {1}, 40}}};
  const Topology more = with_another_host(topology);
  EXPECT_NO_THROW(check(more));
  EXPECT_EQ(more.hosts.size(), 3U);
  ASSERT_EQ(more.ranks.size(), 5U);
  EXPECT_EQ(more.ranks[4], (RankPlace{2, {1}, 40}));
  topology = with_another_rank(topology);
  EXPECT_NO_THROW(check(topology));
  EXPECT_EQ(topology.ranks.back(), (RankPlace{1, {3}, 40}));
  EXPECT_EQ(topology.hosts[1].memory_bytes, 130);
}

TEST(Topology, OwnCoresAreSharedWithNobody) {
  EXPECT_EQ(shared_cores(two_hosts()),
            (std::vector<SharedCores>{{{0}, 1, 1}, {{1}, 2, 2}, {{2}, 1, 1}}));
}

TEST(Topology, OverlapsJoinRanksTransitively) {
  Topology topology;
  topology.hosts = {{"a", 4, kGiB}, {"b", 4, kGiB}};
  topology.ranks = {{0, {3}, 1}, {0, {0, 1}, 1}, {0, {2, 3}, 1}, {1, {0}, 1}, {0, {1, 2}, 1}};
  // 0-2 over core 3, 2-4 over core 2, 4-1 over core 1; rank 3 is on another host.
  EXPECT_EQ(shared_cores(topology), (std::vector<SharedCores>{{{0, 1, 2, 4}, 4, 4}, {{3}, 1, 1}}));
}

TEST(Topology, MoreRanksThanCores) {
  Topology topology;
  topology.hosts = {{"a", 2, kGiB}};
  topology.ranks.assign(4, {0, {0, 1}, 1});
  EXPECT_EQ(shared_cores(topology), (std::vector<SharedCores>{{{0, 1, 2, 3}, 2, 2}}));
}

TEST(Topology, CoresToSpareAreOneMoreForEachRank) {
  Topology topology;
  topology.hosts = {{"a", 8, kGiB}};
  topology.ranks.assign(2, {0, {0, 1, 2, 3}, 1});
  EXPECT_TRUE(has_cores_to_spare(topology));
  topology.ranks[1].threads = 2;
  EXPECT_FALSE(has_cores_to_spare(topology)) << "three threads that compute, two that read";
  topology.ranks[1].cores = {4, 5, 6};
  EXPECT_TRUE(has_cores_to_spare(topology));
  topology.ranks[0].cores = {0};
  EXPECT_FALSE(has_cores_to_spare(topology));
}

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

TEST(TopologyShow, ListsRanksUnderTheirHosts) {
  const Topology topology = {{{"a", 4, 8 * kGibibyte}, {"b", 2, 4 * kGibibyte}},
                             {{0, {0}, kGibibyte}, {1, {0}, kGibibyte}, {0, {1, 2}, kGibibyte}}};
  EXPECT_EQ(show(topology), R"(host 0: a, 4 cores, 8.0 GiB
  rank 0: cores 0, 1.0 GiB
  rank 2: cores 1 2, 1.0 GiB
host 1: b, 2 cores, 4.0 GiB
  rank 1: cores 0, 1.0 GiB
)");
}

TEST(TopologyShow, TellsWhichRanksShareCores) {
  const Topology topology = {{{"a", 2, 8 * kGibibyte}},
                             {{0, {0, 1}, kGibibyte}, {0, {0, 1}, kGibibyte}}};
  EXPECT_NE(show(topology).find("shared: 2 cores by ranks 0 1\n"), std::string::npos);
}

}  // namespace
}  // namespace trireme::topology
