#include "trireme/plan/partition/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <tuple>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "tests/plans/chain_model.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::partition {
namespace {

using layout::testing::ChainNode;
using layout::testing::make_chain;
using layout::testing::make_free_profile;
using layout::testing::make_topology;
using layout::testing::Model;
using ::testing::HasSubstr;

/// `0..3 4..7`: the nodes of the stages.
std::string picture(const layout::Plan& plan) {
  std::string text;
  for (const layout::Stage& stage : plan.stages) {
    text += (text.empty() ? "" : " ") + std::to_string(stage.begin) + ".." +
            std::to_string(stage.end - 1);
  }
  return text;
}

std::int64_t total(const std::map<std::string, std::int64_t>& kinds) {
  std::int64_t sum = 0;
  for (const auto& [kind, bytes] : kinds) sum += bytes;
  return sum;
}

std::int64_t peak(const layout::Plan& plan) {
  std::int64_t most = 0;
  for (const auto& rank : plan.prediction->peak_bytes) most = std::max(most, total(rank));
  return most;
}

/// Node p takes `work[p]` for F and B together.
Model chain_of(const std::vector<double>& work) {
  std::vector<ChainNode> nodes;
  for (const double w : work) nodes.push_back({w / 2, w / 4, w / 4, 1, 1});
  return make_chain(nodes);
}

TEST(Partition, BalancesByTime) {
  const Model model = chain_of({8, 4, 4, 2, 2, 2, 2});
  const layout::Plan plan = partition(model.graph, model.profile, make_topology(3),
                                      {.batch = {24, 1, 1}, .schedule = "interleaved"});
  EXPECT_EQ(picture(plan), "0..0 1..2 3..7");
  EXPECT_EQ(plan.objective, "speed");
  EXPECT_EQ(plan.prediction->step_ms, (24 + 3 - 1) * 8 / 1000.0);
  EXPECT_EQ(plan.prediction->lower_bound_ms, 24 * 8 / 1000.0);
  EXPECT_EQ(plan.prediction->limits.size(), 3U);
}

TEST(Partition, SplitsBackwardsWhereThatIsFaster) {
  const Model model = chain_of({8, 4, 4, 2, 2, 2, 2});
  const layout::Plan plan =
      partition(model.graph, model.profile, make_topology(3), {.batch = {24, 1, 1}});
  EXPECT_EQ(plan.schedule.name, "zero_bubble");
  EXPECT_EQ(plan.prediction->step_ms, (24 * 8 + (3 - 1) * (2 + 4 - 2)) / 1000.0);
}

TEST(Partition, OneStageNeedsNoCut) {
  Model model = chain_of({8, 4});
  model.profile.links.clear();  // One rank measures none.
  const layout::Plan plan =
      partition(model.graph, model.profile, make_topology(1), {.batch = {4, 1, 2}});
  EXPECT_EQ(picture(plan), "0..2");
  EXPECT_EQ(plan.prediction->step_ms, 4 * 12 / 1000.0);
}

TEST(Partition, GivenCutsAreMade) {
  const Model model = chain_of({8, 4, 4, 2, 2, 2, 2});
  const auto with = [&](std::vector<int> cuts) {
    return picture(partition(model.graph, model.profile, make_topology(3),
                             {.batch = {24, 1, 1}, .cuts = std::move(cuts)}));
  };
  EXPECT_EQ(with({2, 5}), "0..1 2..4 5..7");
  EXPECT_EQ(with({3}), "0..0 1..2 3..7");
  EXPECT_EQ(with({4}), "0..0 1..3 4..7");
}

TEST(Partition, ReplicasAreLaidOutStageByStage) {
  const Model model = chain_of({4, 4});
  const layout::Plan plan = partition(model.graph, model.profile, make_topology(6),
                                      {.batch = {8, 1, 4}, .replicas = 2, .stages = 2});
  EXPECT_EQ(plan.roles[0].mesh, (layout::Mesh{2, 2, 1}));
  EXPECT_EQ(plan.roles[0].placement, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(plan.prediction->peak_bytes.size(), 4U);
}

/// Early stages hold more microbatches, so the best cuts give them less to hold.
TEST(Partition, MemoryLimitsMoveCuts) {
  const Model model = make_chain(std::vector<ChainNode>(8, {1, 1, 1, 100, 1}));
  const topology::Topology topology = make_topology(2);
  PartitionOptions options{.batch = {8, 1, 1}, .schedule = "interleaved"};
  const layout::Plan free = partition(model.graph, model.profile, topology, options);
  EXPECT_EQ(picture(free), "0..3 4..8");
  options.device_memory_bytes = peak(free) - 1;
  const layout::Plan tight = partition(model.graph, model.profile, topology, options);
  EXPECT_LT(tight.stages[0].end, 4);
  EXPECT_LE(peak(tight), options.device_memory_bytes);
  EXPECT_GT(tight.prediction->step_ms, free.prediction->step_ms);
}

TEST(Partition, TheObjectiveMemoryTradesTimeWithinItsSlowdown) {
  const Model model = make_chain(std::vector<ChainNode>(16, {1, 1, 1, 100, 1}));
  PartitionOptions options{.batch = {32, 1, 1}};
  const topology::Topology topology = make_topology(2);
  const layout::Plan fast = partition(model.graph, model.profile, topology, options);
  options.objective = Objective::kMemory;
  const layout::Plan small = partition(model.graph, model.profile, topology, options);
  EXPECT_EQ(small.objective, "memory");
  EXPECT_LT(peak(small), peak(fast));
  EXPECT_LE(small.prediction->step_ms, 1.25 * fast.prediction->step_ms);
  options.max_slowdown = 1;
  const layout::Plan same = partition(model.graph, model.profile, topology, options);
  EXPECT_LE(same.prediction->step_ms, fast.prediction->step_ms);
}

/// Of the fastest plans on 1, 2, 3 and 4 ranks the one whose ranks x step is least.
TEST(Partition, TheObjectiveCostPaysForRanks) {
  const Model model = make_chain(std::vector<ChainNode>(8, {4, 2, 2, 1000, 10000}));
  const topology::Topology topology = make_topology(4);
  const auto cheapest = [&](int microbatches, std::int64_t memory) {
    PartitionOptions options{.batch = {microbatches, 1, 1}, .device_memory_bytes = memory};
    double least = 1e30;
    int num_ranks = 0;
    for (int n = 1; n <= 4; ++n) {
      options.stages = n;
      try {
        const double cost =
            n * partition(model.graph, model.profile, topology, options).prediction->step_ms;
        if (cost < least) std::tie(least, num_ranks) = std::pair(cost, n);
      } catch (const Error&) {
        continue;
      }
    }
    options.stages = 0;
    options.replicas = 0;
    options.objective = Objective::kCost;
    const layout::Plan plan =
        partition_over_replicas(model.graph, model.profile, topology, options);
    const int used = layout::train_role(plan).num_ranks();
    EXPECT_EQ(plan.objective, "cost");
    EXPECT_EQ(used, num_ranks);
    EXPECT_EQ(used * plan.prediction->step_ms, least);
    return used;
  };
  EXPECT_EQ(cheapest(8, 0), 1);  // A pipeline never pays for its warm-up.
  const layout::Plan two =
      partition(model.graph, model.profile, topology, {.batch = {8, 1, 1}, .stages = 2});
  const layout::Plan one =
      partition(model.graph, model.profile, topology, {.batch = {8, 1, 1}, .stages = 1});
  ASSERT_LT(peak(two), peak(one));
  EXPECT_EQ(cheapest(8, peak(two)), 2);  // But one rank has too little memory.
}

/// Uses of one large parameter in nodes 1 and 2, an even split between them.
TEST(Partition, UsesOfAParameterStayTogetherWhereMirrorsCost) {
  graph::testing::GraphBuilder b;
  graph::ValueId h = b.input("x", {1});
  const graph::ValueId tied = b.parameter("tied", {1000});
  const graph::ValueId first = b.parameter("first", {1}), last = b.parameter("last", {1});
  for (const graph::ValueId p : {first, tied, tied, last}) h = b.node("mul", {h, p}, b.batch({1}));
  b.loss(h);
  Model model{b.graph(), make_free_profile(b.graph())};
  for (int node = 0; node < 4; ++node) model.profile.costs[node].forward_us = 10;
  const auto plan = [&](double us_per_parameter) {
    model.profile.links = {{profile::LinkKind::kHost,
                            {{0, 0, 0}, {4, 0, 0}, {4000, us_per_parameter, us_per_parameter}}}};
    return picture(partition(model.graph, model.profile, make_topology(2), {.batch = {8, 1, 1}}));
  };
  EXPECT_EQ(plan(0), "0..1 2..4");
  EXPECT_THAT(plan(500), ::testing::AnyOf("0..0 1..4", "0..2 3..4"));
}

std::string complaint(const Model& model, const topology::Topology& topology,
                      const PartitionOptions& options, ErrorKind kind) {
  try {
    partition(model.graph, model.profile, topology, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    return error.message();
  }
  return "";
}

// Activations of 4 microbatches do not fit; of one, and what the others received, they do.
TEST(Partition, StagesRecomputeWhereTheMemoryIsTooSmall) {
  std::vector<ChainNode> nodes(8, {10, 10, 10, 1000, 1});
  nodes[3].width = 10;  // Where the cut is.
  const Model model = make_chain(nodes);
  const topology::Topology topology = make_topology(2);
  PartitionOptions options{.batch = {4, 1, 1}, .cuts = {4}, .schedule = "simple"};
  const layout::Plan wide = partition(model.graph, model.profile, topology, options);
  EXPECT_FALSE(wide.stages[0].recompute || wide.stages[1].recompute);
  options.device_memory_bytes = layout::largest_peak_bytes(wide.prediction->peak_bytes) / 2;
  const layout::Plan narrow = partition(model.graph, model.profile, topology, options);
  EXPECT_TRUE(narrow.stages[0].recompute || narrow.stages[1].recompute);
  EXPECT_LE(layout::largest_peak_bytes(narrow.prediction->peak_bytes), options.device_memory_bytes);
  EXPECT_GT(narrow.prediction->step_ms, wide.prediction->step_ms);
  options.recompute = Recompute::kNone;
  EXPECT_THAT(complaint(model, topology, options, ErrorKind::kResourceExhausted),
              HasSubstr("most of it are activations"));
  options.recompute = Recompute::kAll;
  options.device_memory_bytes = 0;
  const layout::Plan all = partition(model.graph, model.profile, topology, options);
  EXPECT_TRUE(all.stages[0].recompute && all.stages[1].recompute);
}

TEST(Partition, StagesOffloadWhereTheMemoryIsTooSmall) {
  Model model = make_chain(std::vector<ChainNode>(8, {10, 10, 10, 1000, 1}));
  model.profile.step.file = profile::FileCosts{0.001, 0.001};
  const topology::Topology topology = make_topology(2);
  PartitionOptions options{.batch = {8, 1, 1}, .cuts = {4}, .schedule = "simple"};
  const layout::Plan wide = partition(model.graph, model.profile, topology, options);
  options.device_memory_bytes = layout::largest_peak_bytes(wide.prediction->peak_bytes) / 2;
  options.offload = Offload::kAuto;  // Cheaper than another forward.
  const layout::Plan narrow = partition(model.graph, model.profile, topology, options);
  EXPECT_TRUE(narrow.stages[0].offload || narrow.stages[1].offload);
  EXPECT_FALSE(narrow.stages[0].recompute || narrow.stages[1].recompute);
  EXPECT_LE(layout::largest_peak_bytes(narrow.prediction->peak_bytes), options.device_memory_bytes);
  options.device_memory_bytes = 0;
  options.offload = Offload::kAll;
  const layout::Plan all = partition(model.graph, model.profile, topology, options);
  EXPECT_TRUE(all.stages[0].offload && all.stages[1].offload);
  model.profile.step.file.reset();
  EXPECT_THAT(complaint(model, topology, options, ErrorKind::kInvalidArgument),
              HasSubstr("the profile says nothing of files"));
}

TEST(Partition, SaysWhatDoesNotFit) {
  const Model model = make_chain(std::vector<ChainNode>(4, {1, 1, 1, 100, 1000}));
  const std::string message = complaint(model, make_topology(2),
                                        {.batch = {4, 1, 1},
                                         .schedule = "simple",
                                         .recompute = Recompute::kNone,
                                         .device_memory_bytes = 20000},
                                        ErrorKind::kResourceExhausted);
  EXPECT_THAT(message, HasSubstr("no plan with 2 stages in 1 replica fits; with 21,908 bytes more "
                                 "on each rank the best one would"));
  EXPECT_THAT(message, HasSubstr("stage 0: 21,908 bytes more than its 19.5 KiB; most of it are "
                                 "optimizer 15.8 KiB, gradients 7.9 KiB, "));
  EXPECT_THAT(message,
              HasSubstr("its largest values: p0 3.9 KiB, p1 3.9 KiB, of each microbatch "));
  EXPECT_THAT(message, HasSubstr("\n  stage 1: "));
}

TEST(Partition, RefusesWhatDoesNotFitTogether) {
  constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;
  Model model = chain_of({1, 1, 1});
  const topology::Topology four = make_topology(4);
  const auto with = [&](const PartitionOptions& options) {
    return complaint(model, four, options, kInvalid);
  };
  EXPECT_EQ(with({.batch = {4, 1, 1}}), "");
  EXPECT_THAT(complaint(model, make_topology(5), {.batch = {4, 1, 1}}, kInvalid),
              HasSubstr("5 stages need 4 cuts, but the graph allows 3; ask for at most 4 stages"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .stages = 5}), HasSubstr("need 5 ranks"));
  EXPECT_THAT(with({.batch = {4, 1, 2}, .replicas = 2, .stages = 3}), HasSubstr("need 6 ranks"));
  EXPECT_THAT(with({.batch = {4, 2, 1}}), HasSubstr("the profile measured 1"));
  EXPECT_THAT(with({.batch = {4, 3, 1}}), HasSubstr("must divide"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .replicas = 2}), HasSubstr("replicas (2) must divide"));
  EXPECT_THAT(with({.batch = {0, 1, 1}}), HasSubstr("at least 1"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .cuts = {2, 1}}), HasSubstr("ascend"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .cuts = {9}}), HasSubstr("no cut may fall at 9"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .cuts = {1, 2}, .stages = 2}), HasSubstr("2 cuts make"));
  EXPECT_THAT(with({.batch = {4, 1, 1}, .schedule = "fast"}), HasSubstr("no schedule 'fast'"));
  EXPECT_THAT(with({.batch = {std::int64_t{1} << 40, 1, 1}}),
              HasSubstr("is 1099511627776 microbatches of 1 for each replica; at most 1048576"));
  model.graph.mode = graph::Mode::kEval;
  model.profile.graph_sha256 = graph::graph_sha256(model.graph);
  EXPECT_THAT(with({.batch = {4, 1, 1}}), HasSubstr("recorded in mode eval"));
  model.profile.graph_sha256 = std::string(64, '0');
  EXPECT_THAT(with({.batch = {4, 1, 1}}), HasSubstr("profile: it is of another graph"));
}

/// A slow link: two replicas are much faster than two stages, which hold half of the parameters.
TEST(Partition, TheSlowdownIsAgainstTheFastestOfAllReplicas) {
  Model model = make_chain(std::vector<ChainNode>(4, {10, 10, 10, 1, 10'000}));
  model.profile.links = {{profile::LinkKind::kHost, {{0, 1000, 1000}}}};
  PartitionOptions options{
      .batch = {8, 1, 2}, .replicas = 0, .objective = Objective::kMemory, .max_slowdown = 1.25};
  const auto replicas = [&] {
    return partition_over_replicas(model.graph, model.profile, make_topology(2), options)
        .roles[0]
        .mesh.data;
  };
  EXPECT_EQ(replicas(), 2);
  options.max_slowdown = 10;
  EXPECT_EQ(replicas(), 1);
}

TEST(Partition, ReplicasThatCannotBeAreNamed) {
  const Model model = chain_of({1, 1, 1});
  const auto with = [&](int stages) -> std::string {
    try {
      partition_over_replicas(model.graph, model.profile, make_topology(8),
                              {.batch = {8, 1, 1}, .replicas = 0, .stages = stages});
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(with(2),
            "partition: 2 stages on 8 ranks are 4 replicas, which 1 lane cannot be shared among; "
            "give --lanes 4, or --replicas 1 to use 2 ranks");
  EXPECT_EQ(with(3),
            "partition: 3 stages do not divide 8 ranks; give stages that divide the ranks, "
            "or --replicas");
}

TEST(Partition, RandomGraphsGetValidPlansTwiceTheSame) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_planned = 0;
  for (int round = 0; round < 60; ++round) {
    Model model{graph::testing::make_random_graph(random(), 4 + static_cast<int>(random() % 30)),
                {}};
    model.profile = make_free_profile(model.graph);
    for (profile::NodeCost& cost : model.profile.costs) {
      cost.forward_us = 1 + static_cast<double>(random() % 10);
      cost.input_us = static_cast<double>(random() % 10);
      if (random() % 2 == 0) cost.saved_outputs = {0};
      if (random() % 2 == 0) cost.saved_inputs = {0};
    }
    model.profile.links = {{profile::LinkKind::kHost, {{0, 1, 1}, {16, 2, 2}}}};
    PartitionOptions options{.batch = {8, 1, 1}};
    options.objective = random() % 2 == 0 ? Objective::kSpeed : Objective::kMemory;
    const topology::Topology topology = make_topology(1 + static_cast<int>(random() % 4));
    layout::Plan plan;
    try {
      plan = partition(model.graph, model.profile, topology, options);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("but the graph allows"));
      continue;
    }
    ++num_planned;
    const graph::Graph planned = layout::planned_graph(model.graph, plan);
    EXPECT_NO_THROW(layout::check(plan, plan.graph_sha256, planned));
    EXPECT_GE(plan.prediction->step_ms * (1 + 1e-9), plan.prediction->lower_bound_ms);
    const layout::Plan again = partition(model.graph, model.profile, topology, options);
    EXPECT_EQ(to_document_text(layout::kPlanDocument, layout::to_json(again)),
              to_document_text(layout::kPlanDocument, layout::to_json(plan)));
  }
  EXPECT_GT(num_planned, 10);
}

}  // namespace
}  // namespace trireme::partition
