#include "trireme/plan/simulate/alike_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <string>

#include "tests/plans/chain_model.h"
#include "tests/plans/random_models.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::simulate {
namespace {

using layout::testing::Model;
using ::testing::ElementsAre;

constexpr std::int64_t kMemory = std::int64_t{1} << 40;

/// Where ranks are: a host and its cores.
using Places = std::vector<std::pair<int, std::vector<int>>>;

topology::Topology make_cluster(const Places& places) {
  topology::Topology topology;
  for (const auto& [host, cores] : places) {
    while (host >= static_cast<int>(topology.hosts.size())) {
      topology.hosts.push_back({"host" + std::to_string(topology.hosts.size()), 1, kMemory});
    }
    int& num_cores = topology.hosts[host].num_cores;
    for (const int core : cores) num_cores = std::max(num_cores, core + 1);
    topology.ranks.push_back({host, cores, kMemory});
  }
  return topology;
}

/// Two stages of equal work, ranks numbered replica by replica, on these places.
std::vector<int> alike(const Places& places, std::int64_t elements = 1, bool is_sharded = false) {
  const Model model = layout::testing::make_chain({{1, 1, 1, 1, elements}, {1, 1, 1, 1, elements}});
  const int replicas = static_cast<int>(places.size()) / 2;
  layout::Plan plan = layout::testing::make_plan(model.graph, {{1}, 2, replicas});
  plan.sharded_state = is_sharded;
  for (int r = 0; r < replicas; ++r) {
    plan.roles[0].placement[r] = 2 * r;
    plan.roles[0].placement[replicas + r] = 2 * r + 1;
  }
  const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
  return alike_replicas(plan, map, make_cluster(places));
}

TEST(AlikeReplicas, WhereTheSameStagesShareAHost) {
  EXPECT_THAT(alike({{0, {0}}, {0, {1}}}), ElementsAre(0));
  EXPECT_THAT(alike({{0, {0}}, {0, {1}}, {1, {0}}, {1, {1}}}), ElementsAre(0, 0));
  EXPECT_THAT(alike({{0, {0}}, {0, {1}}, {0, {2}}, {1, {0}}, {1, {1}}, {2, {0}}}),
              ElementsAre(0, 1, 1));
}

TEST(AlikeReplicas, WhereRanksUpdateAsManyElements) {
  const Places places = {{0, {0}}, {0, {1}}, {0, {2}}, {0, {3}}, {0, {4}}, {0, {5}}};
  constexpr std::int64_t kBlock = 16 * 1024;  // Shards end at the edges of these.
  EXPECT_THAT(alike(places, 4 * kBlock), ElementsAre(0, 0, 0));
  EXPECT_THAT(alike(places, 3 * kBlock, true), ElementsAre(0, 0, 0));
  EXPECT_THAT(alike(places, 4 * kBlock, true), ElementsAre(0, 1, 0));
}

TEST(AlikeReplicas, WhereRanksCompeteForCoresInTheSameWay) {
  // Each on a core of its own host; then two with two of such hosts between them.
  EXPECT_THAT(alike({{0, {0}}, {0, {0}}, {1, {0}}, {1, {0}}}), ElementsAre(0, 0));
  EXPECT_THAT(alike({{0, {0}},
                     {1, {0}},
                     {0, {0}},
                     {1, {0}},  //
                     {2, {0}},
                     {3, {0}},
                     {2, {0}},
                     {3, {0}}}),
              ElementsAre(0, 1, 0, 1));
  // The second has a core more, the third's ranks share none.
  EXPECT_THAT(alike({{0, {0}}, {0, {0}}, {1, {0, 1}}, {1, {0, 1}}, {2, {0}}, {2, {1}}}),
              ElementsAre(0, 1, 1));
  // Two that share a core, two that do not.
  EXPECT_THAT(
      alike({{0, {0}}, {0, {1}}, {0, {0}}, {0, {2}}, {1, {0}}, {1, {1}}, {1, {2}}, {1, {3}}}),
      ElementsAre(0, 1, 2, 2));
}

struct RandomStep {
  Model model;
  layout::Plan plan;
  layout::ParameterMap map;
  topology::Topology topology;
};

/// Hosts of each replica after one of two patterns, or all ranks anywhere; cores of a host for each rank, or fewer.
topology::Topology random_places(std::mt19937& random, const layout::Role& role) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  const bool has_patterns = pick(4) != 0;
  const int num_cores = 1 + pick(4), replicas_of_host = 1 + pick(2);
  const bool has_own_cores = pick(2) == 0;
  std::vector<std::vector<int>> patterns(2, std::vector<int>(role.mesh.pipeline));
  for (std::vector<int>& pattern : patterns) {
    for (int& host : pattern) host = pick(2);
  }
  Places places(role.placement.size());
  for (int r = 0; r < role.mesh.data; ++r) {
    const std::vector<int>& pattern = patterns[pick(3) == 0 ? 1 : 0];
    for (int p = 0; p < role.mesh.pipeline; ++p) {
      const int rank = role.placement[p * role.mesh.data + r];
      const int host = has_patterns ? 2 * (r / replicas_of_host) + pattern[p] : pick(3);
      places[rank] = {host, {has_own_cores ? rank : pick(num_cores)}};
    }
  }
  return make_cluster(places);
}

RandomStep random_step(std::mt19937& random) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  RandomStep step{layout::testing::random_model(random, 14), {}, {}, {}};
  const graph::Graph& graph = step.model.graph;
  std::vector<int> cuts = layout::testing::random_cuts(random, graph, 5);
  const int num_stages = static_cast<int>(cuts.size()) + 1;
  const int each = num_stages % 2 == 0 ? 1 + pick(2) : 1;
  const std::vector<std::string> names = schedule::schedule_names(each);
  const int replicas = 1 + pick(6);
  step.plan = layout::testing::make_plan(
      graph, {std::move(cuts), 1 + pick(5), replicas, names[pick(static_cast<int>(names.size()))]});
  schedule::deal_out_stages(step.plan, each);
  layout::Role& role = step.plan.roles[0];
  role.mesh.data = replicas;
  role.placement.resize(role.mesh.num_places());
  std::iota(role.placement.begin(), role.placement.end(), 0);
  if (pick(2) == 0) std::shuffle(role.placement.begin(), role.placement.end(), random);
  step.plan.sharded_state = pick(3) == 0;
  step.plan.sharded_parameters = step.plan.sharded_state && pick(2) == 0;
  step.plan.bucket_bytes = 64;
  step.map = layout::make_parameter_map(graph, step.plan);
  step.topology = random_places(random, role);
  return step;
}

void expect_same_events(const Forecast& once, const Forecast& all) {
  const auto& played = once.played_by;
  std::vector<SimulatedEvent> events;
  for (const SimulatedEvent& event : all.simulation.events) {
    if (played[event.rank] == event.rank) events.push_back(event);
  }
  EXPECT_EQ(once.simulation.events, events);
  for (std::size_t rank = 0; rank < played.size(); ++rank) {
    const std::size_t by = played[rank];
    EXPECT_EQ(once.program.ranks[by], all.program.ranks[by]);
    EXPECT_EQ(once.program.ranks[rank].empty(), by != rank);
  }
}

/// The numbers of a forecast that plays each kind once are those of one that plays all, to the last bit.
TEST(AlikeReplicas, PlayedOnceTellWhatAllDo) {
  std::mt19937 random(27);
  int num_left_out = 0, num_replicas = 0, num_different = 0;
  for (int round = 0; round < 250; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const RandomStep step = random_step(random);
    const PriceInputs inputs{step.model.graph, step.plan, step.map, step.model.profile,
                             step.topology};
    ForecastOptions options{.program = {.has_norm = random() % 2 == 0, .tolerant = true}};
    const Forecast all = forecast(inputs, options);
    options.plays_alike_once = true;
    const Forecast once = forecast(inputs, options);
    EXPECT_EQ(once.simulation.step_us, all.simulation.step_us);
    EXPECT_EQ(once.simulation.busy_us, all.simulation.busy_us);
    EXPECT_EQ(once.memory, all.memory);
    EXPECT_EQ(once.plan_bound_us, all.plan_bound_us);
    EXPECT_EQ(once.any_bound_us, all.any_bound_us);
    EXPECT_EQ(expected_memory(inputs, once, {}), expected_memory(inputs, all, {}));
    expect_same_events(once, all);
    const int replicas = step.plan.roles[0].mesh.data;
    const std::set<int> ranks(once.played_by.begin(), once.played_by.end());
    const int num_played = static_cast<int>(ranks.size()) / step.plan.roles[0].mesh.pipeline;
    num_replicas += replicas;
    num_left_out += replicas - num_played;
    num_different += num_played - 1;
  }
  EXPECT_GT(num_left_out, num_replicas / 4);
  EXPECT_GT(num_different, num_replicas / 8);
}

TEST(AlikeReplicas, ATopologyWithoutAPlaceIsRefused) {
  const Model model = layout::testing::make_chain({{}, {}});
  const layout::Plan plan = layout::testing::make_plan(model.graph, {{1}, 2, 2});
  const layout::ParameterMap map = layout::make_parameter_map(model.graph, plan);
  const topology::Topology topology = layout::testing::make_topology(3);
  try {
    forecast({model.graph, plan, map, model.profile, topology}, {.plays_alike_once = true});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(error.message(), "the plan places 4 ranks, but the topology has 3");
  }
}

}  // namespace
}  // namespace trireme::simulate
