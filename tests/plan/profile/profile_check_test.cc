#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::profile {
namespace {

using ::testing::HasSubstr;

Profile mlp_profile() {
  Profile profile;
  profile.microbatch = 2;
  NodeCost linear;
  linear.saved_inputs = {0, 1};
  NodeCost pointwise;
  pointwise.saved_outputs = {0};
  profile.costs = {linear, pointwise};
  profile.cost_of = {0, 1, 0, 1};
  profile.ranges = {{0, 2, 1, 1}, {2, 4, 1, 1}};
  profile.links = {{LinkKind::kHost, {{0, 1, 1}, {8, 2, 2}}}};
  return profile;
}

std::string complaint(const std::function<void(Profile&)>& change) {
  Profile profile = mlp_profile();
  change(profile);
  try {
    check(profile, graph::testing::make_mlp());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(ProfileCheck, NamesTheField) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(complaint([](Profile&) {}), "");
  EXPECT_THAT(complaint([](Profile& p) { p.microbatch = 0; }), HasSubstr("microbatch"));
  EXPECT_THAT(complaint([](Profile& p) { p.num_busy_ranks = 0; }), HasSubstr("num_busy_ranks"));
  EXPECT_THAT(complaint([](Profile& p) { p.threads = 0; }), HasSubstr("threads"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[1].forward_us = kInf; }),
              HasSubstr("costs[1].forward_us must be from 0 to 1e+12, got inf"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[0].weight_us = -1; }),
              HasSubstr("costs[0].weight_us"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[0].kept_bytes = -1; }),
              HasSubstr("costs[0].kept_bytes"));
  EXPECT_THAT(complaint([](Profile& p) { p.held = {10, 10}; }), HasSubstr("held.held_bytes"));
  EXPECT_THAT(complaint([](Profile& p) { p.held = {10, 20, 0.5, 1}; }),
              HasSubstr("are at least 1"));
  EXPECT_THAT(complaint([](Profile& p) { p.uncaptured = {1, 0.5}; }),
              HasSubstr("uncaptured.backward are at least 1"));
  EXPECT_THAT(complaint([](Profile& p) { p.uncaptured = {kInf, 1}; }),
              HasSubstr("uncaptured.forward"));
  EXPECT_THAT(complaint([](Profile& p) { p.step.messages = {{64, 1}, {64, 2}}; }),
              HasSubstr("step.messages[1].bytes must ascend"));
  EXPECT_THAT(complaint([](Profile& p) { p.step.messages = {{64, -1}}; }),
              HasSubstr("step.messages[0].us"));
  EXPECT_THAT(complaint([](Profile& p) { p.step.fold_ns = std::nan(""); }),
              HasSubstr("step.fold_ns"));
}

/// Sums of them left 64 bits, and counted as fitting into any memory.
TEST(ProfileCheck, RefusesSizesAndTimesThatNoSumCouldHold) {
  EXPECT_THAT(
      complaint([](Profile& p) { p.costs[0].kept_bytes = std::int64_t{1} << 62; }),
      HasSubstr("costs[0].kept_bytes must be from 0 to 70368744177664, got 46116860184273"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[1].input_us = 1e308; }),
              HasSubstr("costs[1].input_us must be from 0 to 1e+12, got 1e+308"));
  EXPECT_THAT(complaint([](Profile& p) { p.microbatch = std::int64_t{1} << 40; }),
              HasSubstr("microbatch must be from 1 to 4194304"));
}

/// A parameter of [2^40, 2^19] with AdamW came to 2^63 bytes, and counted as fitting.
TEST(ProfileCheck, RefusesShapesWhoseSumsLeave64Bits) {
  const auto refusal = [](const graph::Graph& graph, std::int64_t num_microbatches) {
    try {
      check_countable(mlp_profile(), graph, num_microbatches);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return std::string();
  };
  graph::Graph graph = graph::testing::make_mlp();
  EXPECT_EQ(refusal(graph, 1 << 20), "");
  graph::Value& weight = graph.values[graph.parameters[0].value];
  weight.shape = {{0, std::int64_t{1} << 40}, {0, std::int64_t{1} << 10}};
  weight.strides = {{0, std::int64_t{1} << 10}, {0, 1}};
  EXPECT_EQ(refusal(graph, 1), "");
  EXPECT_THAT(refusal(graph, 1 << 20), HasSubstr("and a step has 1048576 microbatches"));
  weight.shape[1] = {0, std::int64_t{1} << 19};
  weight.strides[0] = weight.shape[1];
  EXPECT_THAT(refusal(graph, 1), HasSubstr("more than can be counted"));
}

TEST(ProfileCheck, IndicesAreInRange) {
  EXPECT_THAT(complaint([](Profile& p) { p.cost_of.pop_back(); }),
              HasSubstr("cost_of has 3 entries, but the graph has 4 nodes"));
  EXPECT_THAT(complaint([](Profile& p) { p.cost_of[2] = 2; }), HasSubstr("cost_of[2] is 2"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[0].saved_inputs = {3}; }),
              HasSubstr("costs[0].saved_inputs has 3, but a node of this cost has 3"));
  EXPECT_THAT(complaint([](Profile& p) { p.costs[1].saved_outputs = {-1}; }),
              HasSubstr("costs[1].saved_outputs"));
}

TEST(ProfileCheck, RangesAndMessageSizesAscend) {
  EXPECT_THAT(complaint([](Profile& p) { p.ranges[1].begin = 1; }), HasSubstr("ranges[1] [1, 4)"));
  EXPECT_THAT(complaint([](Profile& p) { p.ranges[1].end = 5; }), HasSubstr("ranges[1]"));
  EXPECT_THAT(complaint([](Profile& p) { p.ranges[0].end = 0; }), HasSubstr("ranges[0]"));
  EXPECT_THAT(complaint([](Profile& p) { p.ranges[0].backward_us = -1; }),
              HasSubstr("ranges[0].backward_us"));
  EXPECT_THAT(complaint([](Profile& p) { p.links[0].times[1].bytes = 0; }),
              HasSubstr("links[0].times[1].bytes must ascend"));
  EXPECT_THAT(complaint([](Profile& p) { p.links[0].times.clear(); }), HasSubstr("is empty"));
  EXPECT_THAT(complaint([](Profile& p) { p.links.push_back(p.links[0]); }),
              HasSubstr("links[1].kind appears twice"));
}

TEST(ProfileCheck, AnUnknownKindOfLinkIsNamed) {}

TEST(ProfileCheck, TheGraphIsTheRecordedOne) {
  graph::Graph graph = graph::testing::make_mlp();
  graph.nodes[1].copy_of = 0;
  EXPECT_THROW(check(mlp_profile(), graph), Error);
  graph = graph::testing::make_mlp();
  graph.nodes[1].id = 9;
  EXPECT_THROW(check(mlp_profile(), graph), Error);
}

}  // namespace
}  // namespace trireme::profile
