#include "trireme/plan/simulate/link_loads.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/plans/chain_model.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::simulate {
namespace {

using Loads = std::map<int, double>;  ///< Bytes, by link.
using Ranks = std::vector<int>;

Loads loads_of(const std::vector<SharedLinks::Load>& loads) {
  Loads result;
  for (const SharedLinks::Load& load : loads) result[load.link] += load.bytes;
  return result;
}

/// Ranks 0 and 1 on one host, 2 and 3 on another.
topology::Topology two_hosts() {
  topology::Topology topology = layout::testing::make_topology(4);
  topology.hosts.push_back(topology.hosts[0]);
  topology.hosts[1].name = "another";
  topology.ranks[2].host = topology.ranks[3].host = 1;
  return topology;
}

/// Their cards: links 0 and 1, out and in; 2 and 3. A switch that rank 0 is behind: 4 and 5.
LinkLoads loads_between(const std::vector<std::pair<int, int>>& channels,
                        const std::vector<Ranks>& groups) {
  topology::Topology topology = two_hosts();
  topology.shared_links = {
      {"card a", {0, 1}, 2}, {"card b", {2, 3}, 5}, {"switch", {0}, 8, topology::Passing::kHost}};
  schedule::StepProgram program;
  for (const auto& [from, to] : channels)
    program.channels.push_back({.from_rank = from, .to_rank = to});
  for (const Ranks& ranks : groups) program.groups.push_back({.ranks = ranks});
  return link_loads(program, topology);
}

TEST(LinkLoads, OfMessages) {
  const LinkLoads loads = loads_between({{0, 2}, {3, 1}, {0, 1}, {1, 0}, {2, 3}}, {});
  EXPECT_EQ(loads.bytes_per_us, (std::vector<double>{2000, 2000, 5000, 5000, 8000, 8000}));
  ASSERT_EQ(loads.channels.size(), 5U);
  EXPECT_EQ(loads_of(loads.channels[0]), (Loads{{0, 1}, {3, 1}}));
  EXPECT_EQ(loads_of(loads.channels[1]), (Loads{{2, 1}, {1, 1}}));
  EXPECT_EQ(loads_of(loads.channels[2]), (Loads{{4, 1}}));
  EXPECT_EQ(loads_of(loads.channels[3]), (Loads{{5, 1}}));
  EXPECT_EQ(loads_of(loads.channels[4]), Loads{});
}

/// For each byte that each rank of the group sends each other.
TEST(LinkLoads, OfSums) {
  const LinkLoads loads =
      loads_between({}, {{2, 3}, {0, 1}, {0, 2}, {0, 1, 2, 3}, {0, 2, 1, 3}, {0, 1, 2}});
  ASSERT_EQ(loads.groups.size(), 6U);
  const auto cards = [](double each) { return Loads{{0, each}, {1, each}, {2, each}, {3, each}}; };
  const auto with_switch = [&](double each, double of_switch) {
    Loads all = cards(each);
    all[4] = all[5] = of_switch;
    return all;
  };
  EXPECT_EQ(loads_of(loads.groups[0]), Loads{});
  EXPECT_EQ(loads_of(loads.groups[1]), (Loads{{4, 1}, {5, 1}}));
  EXPECT_EQ(loads_of(loads.groups[2]), cards(1));
  // On two levels: the parts of a host are one, half of what four pairs would send; 0 and 1 join halves.
  EXPECT_EQ(loads_of(loads.groups[3]), with_switch(2, 2));
  EXPECT_EQ(loads_of(loads.groups[4]), with_switch(4, 1)) << "the ranks of a host are apart: flat";
  EXPECT_EQ(loads_of(loads.groups[5]), with_switch(2, 1)) << "hosts of different numbers: flat";
}

/// Two replicas on two hosts. The step with gradients of so many elements, beside a card of 1 byte per microsecond.
double step_us(std::int64_t elements, bool is_sharded) {
  auto model = layout::testing::make_chain({{1, 2, 3, 1, elements}});
  model.profile.links = {{profile::LinkKind::kNetwork, {{0, 0, 0}, {1024, 1, 1}}}};
  layout::Plan plan = layout::testing::make_plan(model.graph, {{}, 1, 2});
  plan.sharded_state = is_sharded;
  const auto map = layout::make_parameter_map(model.graph, plan);
  topology::Topology topology = two_hosts();
  topology.ranks = {topology.ranks[0], topology.ranks[2]};
  topology.shared_links = {{"card", {0}, 1e-3}};
  return forecast({model.graph, plan, map, model.profile, topology}).simulation.step_us;
}

/// Of two ranks each sends half of the buffer twice: parts, then results, or values in place of these.
TEST(LinkLoads, ASumOverANarrowLinkTakesItsBytes) {
  constexpr std::int64_t kBytes = 4 * 65536;
  for (const bool is_sharded : {false, true})
    EXPECT_NEAR(step_us(2 * 65536, is_sharded) - step_us(65536, is_sharded), kBytes, 1e-3)
        << is_sharded;
}

}  // namespace
}  // namespace trireme::simulate
