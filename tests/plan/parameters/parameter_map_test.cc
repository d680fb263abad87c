#include "trireme/plan/parameters/parameter_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/parameters/check.h"

namespace trireme::parameters {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;

layout::Plan plan_of(const Graph& graph, const std::vector<int>& cuts, int lanes = 1) {
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts, {16, 1, lanes});
}

/// Buckets as `stage kind dtype elements: parameter/site@offset ...`, one a line.
std::string picture(const ParameterMap& map) {
  constexpr const char* kKinds[] = {"owner", "mirror", "site"};
  std::string text;
  for (const Bucket& bucket : map.buckets) {
    text += std::to_string(bucket.stage) + " " + kKinds[static_cast<int>(bucket.kind)] + " " +
            std::string(to_text(bucket.dtype)) + " " + std::to_string(bucket.num_elements) + ":";
    for (const Slot& slot : bucket.slots) {
      text += " " + slot.parameter + "/" + std::to_string(slot.site) + "@" +
              std::to_string(slot.offset_elements);
    }
    text += "\n";
  }
  return text;
}

TEST(ParameterMap, SlotsFollowTheBackward) {
  const Graph graph = graph::testing::make_mlp();
  EXPECT_EQ(picture(make_parameter_map(graph, plan_of(graph, {}))),
            "0 owner f32 224: 2.weight/0@0 2.bias/0@64 0.weight/0@80 0.bias/0@208\n");
  EXPECT_EQ(picture(make_parameter_map(graph, plan_of(graph, {1}))),
            "0 owner f32 144: 0.weight/0@0 0.bias/0@128\n"
            "1 owner f32 80: 2.weight/0@0 2.bias/0@64\n");
}

TEST(ParameterMap, ABucketIsClosedOnceItIsFull) {
  const Graph graph = graph::testing::make_mlp();
  EXPECT_EQ(picture(make_parameter_map(graph, plan_of(graph, {}), {.bucket_bytes = 300})),
            "0 owner f32 80: 2.weight/0@0 2.bias/0@64\n"
            "0 owner f32 128: 0.weight/0@0\n"
            "0 owner f32 16: 0.bias/0@0\n");
  EXPECT_EQ(picture(make_parameter_map(graph, plan_of(graph, {}), {.bucket_bytes = 1})),
            "0 owner f32 64: 2.weight/0@0\n"
            "0 owner f32 16: 2.bias/0@0\n"
            "0 owner f32 128: 0.weight/0@0\n"
            "0 owner f32 16: 0.bias/0@0\n");
}

/// t is used at positions 0, 1 and 3, s at 2.
Graph make_tied() {
  GraphBuilder b;
  ValueId h = b.input("x", {4});
  const ValueId t = b.parameter("t", {4});
  const ValueId s = b.parameter("s", {4});
  for (const ValueId p : {t, t, s, t}) h = b.node("mul", {h, p}, b.batch({4}));
  b.loss(h);
  return b.graph();
}

TEST(ParameterMap, FurtherSitesAndMirrorsHaveBucketsOfTheirOwn) {
  const Graph graph = make_tied();
  layout::Plan plan = plan_of(graph, {3});
  EXPECT_EQ(picture(make_parameter_map(graph, plan)),
            "0 owner f32 32: s/0@0 t/0@16\n"
            "0 site f32 16: t/1@0\n"
            "1 mirror f32 16: t/2@0\n");
  plan.tie_owners = {{"t", 1}};
  // In stage 0 the first of two sites keeps the copy of the values.
  EXPECT_EQ(picture(make_parameter_map(graph, plan)),
            "0 owner f32 16: s/0@0\n"
            "0 site f32 16: t/1@0\n"
            "0 mirror f32 16: t/0@0\n"
            "1 owner f32 16: t/2@0\n");
}

TEST(ParameterMap, DtypesDoNotMix) {
  Graph graph = graph::testing::make_mlp();
  graph.values[3].dtype = Dtype::kBf16;
  EXPECT_EQ(picture(make_parameter_map(graph, plan_of(graph, {}))),
            "0 owner bf16 64: 2.weight/0@0\n"
            "0 owner f32 160: 2.bias/0@0 0.weight/0@16 0.bias/0@144\n");
}

/// Parameters by the numbers of their elements, all used by one node each.
Graph make_sized(const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
  GraphBuilder b;
  ValueId h = b.input("x", {1});
  for (const auto& [name, size] : sizes) {
    h = b.node("use", {h, b.parameter(name, {size})}, b.batch({1}));
  }
  b.loss(h);
  return b.graph();
}

TEST(ParameterMap, NormBlocksAreNumberedByNameUsedOrNot) {
  constexpr std::int64_t kBlock = kNormBlockElements;
  const Graph sized = make_sized({{"b", kBlock + 1}, {"a.z", 3}, {"a", 2 * kBlock}, {"a0", 0}});
  const ParameterMap map = make_parameter_map(sized, plan_of(sized, {}));
  std::map<std::string, std::int64_t> first;
  for (const Slot& slot : map.buckets[0].slots) first[slot.parameter] = slot.first_norm_block;
  // Byte order: "a" < "a.z" < "a0" < "b".
  EXPECT_EQ(first,
            (std::map<std::string, std::int64_t>{{"a", 0}, {"a.z", 2}, {"a0", 3}, {"b", 3}}));
}

TEST(ParameterMap, ShardsAreBalancedAndEndAtNormBlocks) {
  constexpr std::int64_t kBlock = kNormBlockElements;
  const Graph graph = make_sized({{"c", 5 * kBlock + 7}, {"b", 40}, {"a", 3 * kBlock}});
  for (const int replicas : {1, 2, 4, 8, 16}) {
    layout::Plan plan = plan_of(graph, {}, 16);
    plan.roles[0].mesh.data = replicas;
    plan.roles[0].placement.resize(replicas);
    for (int r = 0; r < replicas; ++r) plan.roles[0].placement[r] = r;
    const ParameterMap map = make_parameter_map(graph, plan);
    EXPECT_NO_THROW(check(map, graph, plan)) << replicas;
    const Bucket& bucket = map.buckets.at(0);
    ASSERT_EQ(bucket.shards.size(), static_cast<std::size_t>(replicas));
    for (const Shard& shard : bucket.shards) {
      const std::int64_t ideal = bucket.num_elements / replicas;
      EXPECT_LE(std::abs(shard.end_elements - shard.begin_elements - ideal), kBlock)
          << replicas << " replicas, rank " << shard.data_rank;
    }
  }
}

TEST(ParameterMap, EveryCopyOfANodeIsASite) {
  GraphBuilder b;
  ValueId h = b.input("x", {4});
  const ValueId bias = b.node("embedding", {b.parameter("table", {8, 4})}, b.fixed({4}));
  for (int i = 0; i < 3; ++i) h = b.node("add", {h, bias}, b.batch({4}));
  b.loss(h);
  layout::Plan plan = plan_of(b.graph(), {});
  plan.copied_nodes = {0};
  const Graph planned = layout::planned_graph(b.graph(), plan);
  ASSERT_EQ(planned.nodes.size(), 7U);
  plan.stages.resize(2);
  plan.stages[0].end = plan.stages[1].begin = 4;
  plan.stages[1].end = 7;
  const ParameterMap map = make_parameter_map(planned, plan);
  EXPECT_EQ(map.graph_sha256, graph::graph_sha256(b.graph()));
  EXPECT_EQ(picture(map),
            "0 site f32 32: table/1@0\n"
            "0 owner f32 32: table/0@0\n"
            "1 mirror f32 32: table/2@0\n");
  EXPECT_NO_THROW(check(map, planned, plan));
}

TEST(ParameterMap, RefusesAPlanOfAnotherGraph) {
  const Graph graph = graph::testing::make_mlp();
  layout::Plan plan = plan_of(graph, {});
  plan.graph_sha256 = std::string(64, '0');
  try {
    make_parameter_map(graph, plan);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("made for another graph"));
  }
  EXPECT_THROW(make_parameter_map(graph, plan_of(graph, {}), {.bucket_bytes = 0}), Error);
}

TEST(ParameterMap, OfRandomGraphsAndCutsPassesTheCheck) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Graph graph = graph::testing::make_random_graph(seed, 30);
    for (const int cut : {0, 7, 15, 22}) {
      layout::Plan plan;
      try {
        plan = cut == 0 ? plan_of(graph, {}, 4) : plan_of(graph, {cut}, 4);
      } catch (const Error&) {
        continue;  // no cut may fall there
      }
      plan.roles[0].mesh = {static_cast<int>(plan.stages.size()), 2, 1};
      plan.roles[0].placement.clear();
      for (int r = 0; r < plan.roles[0].mesh.num_ranks(); ++r) plan.roles[0].placement.push_back(r);
      const ParameterMap map = make_parameter_map(graph, plan, {.bucket_bytes = 64});
      ASSERT_NO_THROW(check(map, graph, plan)) << "seed " << seed << ", cut " << cut;
    }
  }
}

}  // namespace
}  // namespace trireme::parameters
