#include "trireme/plan/parameters/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::parameters {
namespace {

using ::testing::HasSubstr;

/// What `check` says about the map of the MLP in two stages with two replicas after a change.
std::string complaint(const std::function<void(ParameterMap&)>& change) {
  const graph::Graph graph = graph::testing::make_mlp();
  layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(graph), std::array{2}, {4, 1, 2});
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
}  // namespace trireme::parameters
