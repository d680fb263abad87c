#include "trireme/plan/layout/parameter_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::layout {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using ::testing::HasSubstr;

Plan plan_of(const Graph& graph, const std::vector<int>& cuts, int lanes = 1) {
  return make_manual_plan(graph, graph::graph_sha256(graph), cuts, {16, 1, lanes});
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
  Plan plan = plan_of(graph, {});
  plan.bucket_bytes = 300;
  EXPECT_EQ(picture(make_parameter_map(graph, plan)),
            "0 owner f32 80: 2.weight/0@0 2.bias/0@64\n"
            "0 owner f32 128: 0.weight/0@0\n"
            "0 owner f32 16: 0.bias/0@0\n");
  plan.bucket_bytes = 1;
  EXPECT_EQ(picture(make_parameter_map(graph, plan)),
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
  Plan plan = plan_of(graph, {3});
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
    Plan plan = plan_of(graph, {}, 16);
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

// `t` has two uses in its stage, and another parameter one: the first is summed as a whole, so it does not share a bucket.
TEST(ParameterMap, WhatStaysWholeHasBucketsOfItsOwnWhereParametersAreSharded) {
  GraphBuilder b;
  const ValueId t = b.parameter("t", {4});
  const ValueId h = b.node("mul", {b.input("x", {4}), t}, b.batch({4}));
  b.loss(b.node("add", {h, b.parameter("p", {4}), t}, b.batch({4})));
  Plan plan = plan_of(b.graph(), {}, 2);
  plan.roles[0].mesh.data = 2;
  plan.roles[0].placement = {0, 1};
  plan.sharded_state = true;
  const ParameterMap state = make_parameter_map(b.graph(), plan);
  EXPECT_EQ(picture(state), "0 site f32 16: t/1@0\n0 owner f32 32: p/0@0 t/0@16\n");
  EXPECT_EQ(sharded_buckets(state, plan), (std::vector<bool>{false, false}));
  plan.sharded_parameters = true;
  const ParameterMap map = make_parameter_map(b.graph(), plan);
  EXPECT_EQ(picture(map), "0 site f32 16: t/1@0\n0 owner f32 16: p/0@0\n0 owner f32 16: t/0@0\n");
  EXPECT_EQ(sharded_buckets(map, plan), (std::vector<bool>{false, true, false}));
  EXPECT_NO_THROW(check(map, b.graph(), plan));
  plan.roles[0].mesh.data = 1;
  plan.roles[0].placement = {0};
  EXPECT_EQ(sharded_buckets(map, plan), std::vector<bool>(3)) << "of one replica";
}

// A checkpoint has state in rows of the first dimension.
TEST(ParameterMap, ShardsEndBetweenRows) {
  constexpr std::int64_t kBlock = kNormBlockElements;
  GraphBuilder b;
  // 256 divides a block: 64 rows. Of 192, 256 rows are 3 blocks. Of 1000, 2048 rows would be 125: there are fewer.
  const ValueId x = b.input("x", {4});
  for (const auto& [name, rows, columns] :
       {std::tuple{"a", 1024, 256}, {"b", 1024, 192}, {"c", 300, 1000}}) {
    const ValueId h = b.node("use", {x, b.parameter(name, {rows, columns})}, b.batch({4}));
    b.loss(h, std::string("loss ") + name);
  }
  Plan plan = plan_of(b.graph(), {}, 16);
  plan.roles[0].mesh.data = 16;
  plan.roles[0].placement.resize(16);
  std::iota(plan.roles[0].placement.begin(), plan.roles[0].placement.end(), 0);
  const ParameterMap map = make_parameter_map(b.graph(), plan);
  check(map, b.graph(), plan);
  std::map<std::string, std::set<std::int64_t>> inside;
  for (const Bucket& bucket : map.buckets) {
    for (const Shard& shard : bucket.shards) {
      for (const Slot& slot : bucket.slots) {
        const std::int64_t at = shard.end_elements - slot.offset_elements;
        if (at > 0 && at < slot.num_elements) inside[slot.parameter].insert(at);
      }
    }
  }
  EXPECT_FALSE(inside["a"].empty());
  EXPECT_FALSE(inside["b"].empty());
  EXPECT_TRUE(inside["c"].empty());
  for (const std::int64_t at : inside["a"]) EXPECT_EQ(at % kBlock, 0);
  for (const std::int64_t at : inside["b"]) EXPECT_EQ(at % (3 * kBlock), 0);
}

TEST(ParameterMap, RowsAreApartWhereTheFirstDimensionIsOutermost) {
  graph::Value value;
  value.shape = {{0, 8}, {0, 3}, {0, 5}};
  value.strides = {{0, 15}, {0, 1}, {0, 3}};  // channels last
  EXPECT_EQ(row_elements(value), 15);
  value.strides = {{0, 1}, {0, 8}, {0, 24}};
  EXPECT_EQ(row_elements(value), 120);
  value.shape = value.strides = {};
  EXPECT_EQ(row_elements(value), 1);
}

TEST(ParameterMap, EveryCopyOfANodeIsASite) {
  GraphBuilder b;
  ValueId h = b.input("x", {4});
  const ValueId bias = b.node("embedding", {b.parameter("table", {8, 4})}, b.fixed({4}));
  for (int i = 0; i < 3; ++i) h = b.node("add", {h, bias}, b.batch({4}));
  b.loss(h);
  Plan plan = plan_of(b.graph(), {});
  plan.copied_nodes = {0};
  const Graph planned = planned_graph(b.graph(), plan);
  ASSERT_EQ(planned.nodes.size(), 7U);
  plan.stages.resize(2);
  plan.stages[0].end = plan.stages[1].begin = 4;
  plan.stages[1].end = 7;
  plan.stages[1].position = 0;
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
  Plan plan = plan_of(graph, {});
  plan.graph_sha256 = std::string(64, '0');
  try {
    make_parameter_map(graph, plan);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("made for another graph"));
  }
  plan = plan_of(graph, {});
  plan.bucket_bytes = 0;
  EXPECT_THROW(make_parameter_map(graph, plan), Error);
}

TEST(ParameterMap, OfRandomGraphsAndCutsPassesTheCheck) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Graph graph = graph::testing::make_random_graph(seed, 30);
    for (const int cut : {0, 7, 15, 22}) {
      Plan plan;
      try {
        plan = cut == 0 ? plan_of(graph, {}, 4) : plan_of(graph, {cut}, 4);
      } catch (const Error&) {
        continue;  // no cut may fall there
      }
      plan.roles[0].mesh = {static_cast<int>(plan.stages.size()), 2, 1};
      plan.roles[0].placement.clear();
      for (int r = 0; r < plan.roles[0].mesh.num_places(); ++r)
        plan.roles[0].placement.push_back(r);
      plan.bucket_bytes = 64;
      const ParameterMap map = make_parameter_map(graph, plan);
      ASSERT_NO_THROW(check(map, graph, plan)) << "seed " << seed << ", cut " << cut;
    }
  }
}

/// What `check` says about the map of the MLP in two stages with two replicas after a change.
std::string complaint(const std::function<void(ParameterMap&)>& change) {
  const graph::Graph graph = graph::testing::make_mlp();
  Plan plan = make_manual_plan(graph, graph::graph_sha256(graph), std::array{2}, {4, 1, 2});
  plan.roles[0].mesh.data = 2;
  plan.roles[0].placement = {0, 1, 2, 3};
  ParameterMap map = make_parameter_map(graph, plan);
  change(map);
  try {
    check(map, graph, plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(ParameterMapCheck, AcceptsWhatWasMade) {
  EXPECT_EQ(complaint([](ParameterMap&) {}), "");
}

TEST(ParameterMapCheck, HashesMatch) {
  EXPECT_THAT(complaint([](ParameterMap& m) { m.graph_sha256 = "x"; }),
              HasSubstr("made for another graph: it names x"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.plan_sha256 = "x"; }),
              HasSubstr("made for another plan"));
}

TEST(ParameterMapCheck, EverySiteHasOneSlotInItsPlace) {
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots.pop_back(); }),
              HasSubstr("parameter '0.bias' site 0 has no slot"));
  EXPECT_THAT(
      complaint([](ParameterMap& m) { m.buckets[0].slots.push_back(m.buckets[0].slots[0]); }),
      HasSubstr("no such use site, or it has a slot already"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots[0].site = 1; }),
              HasSubstr("no such use site"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].stage = 1; }),
              HasSubstr("stage, kind or dtype"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].kind = BucketKind::kMirror; }),
              HasSubstr("stage, kind or dtype"));
  EXPECT_THAT(complaint([](ParameterMap& m) { ++m.buckets[0].slots[0].num_elements; }),
              HasSubstr("expected 128 elements"));
  EXPECT_THAT(complaint([](ParameterMap& m) { ++m.buckets[0].slots[0].first_norm_block; }),
              HasSubstr("from norm block"));
}

TEST(ParameterMapCheck, SlotsAreAlignedAndApart) {
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots[1].offset_elements = 129; }),
              HasSubstr("no multiple of 64 bytes"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots[1].offset_elements = 112; }),
              HasSubstr("overlaps"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots[0].offset_elements = -16; }),
              HasSubstr("overlaps"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].slots[1].offset_elements = 1 << 20; }),
              HasSubstr("beyond the bucket"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].num_elements = -1; }),
              HasSubstr("negative"));
}

TEST(ParameterMapCheck, ShardsCoverTheBucket) {
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].shards.pop_back(); }),
              HasSubstr("expected 2 shards, got 1"));
  EXPECT_THAT(complaint([](ParameterMap& m) { m.buckets[0].shards[1].data_rank = 0; }),
              HasSubstr("must be of data rank 1"));
  EXPECT_THAT(complaint([](ParameterMap& m) { --m.buckets[1].shards[1].end_elements; }),
              HasSubstr("do not cover"));
  EXPECT_THAT(complaint([](ParameterMap& m) {
                m.buckets[0].shards[0].end_elements = 5;
                m.buckets[0].shards[1].begin_elements = 5;
              }),
              HasSubstr("ends within a norm block"));
}

}  // namespace
}  // namespace trireme::layout
