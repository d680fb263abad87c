#include "trireme/plan/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"

namespace trireme::profile {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using ::testing::HasSubstr;

/// Node p costs p + 1 forward, twice that input, three times that weight.
Profile rising_profile(int num_nodes) {
  Profile profile;
  profile.microbatch = 2;
  for (int p = 0; p < num_nodes; ++p) {
    NodeCost cost;
    cost.forward_us = p + 1;
    cost.input_us = 2 * (p + 1);
    cost.weight_us = 3 * (p + 1);
    profile.costs.push_back(cost);
    profile.cost_of.push_back(p);
  }
  return profile;
}

std::vector<double> forwards(const Profile& profile, const graph::Graph& planned) {
  std::vector<double> times;
  for (const NodeTime& time : node_times(profile, planned)) times.push_back(time.forward_us);
  return times;
}

TEST(NodeTimes, WithoutRangesTheyAreTheCosts) {
  const graph::Graph graph = graph::testing::make_mlp();
  Profile profile = rising_profile(4);
  profile.cost_of = {0, 1, 0, 3};
  EXPECT_EQ(forwards(profile, graph), (std::vector<double>{1, 2, 1, 4}));
  EXPECT_EQ(node_times(profile, graph)[3].backward_us(), 20);
  EXPECT_EQ(node_costs(profile, graph)[2], &profile.costs[0]);
}

TEST(NodeTimes, AreScaledSoThatRangesTakeWhatTheyTook) {
  const graph::Graph graph = graph::testing::make_mlp();
  Profile profile = rising_profile(4);
  profile.ranges = {{0, 2, 6, 30}, {3, 4, 2, 10}};
  const std::vector<NodeTime> times = node_times(profile, graph);
  EXPECT_EQ(forwards(profile, graph), (std::vector<double>{2, 4, 3, 2}));
  EXPECT_EQ(times[0].backward_us() + times[1].backward_us(), 30);
  EXPECT_EQ(times[0].input_us / times[0].weight_us, 2.0 / 3);
  EXPECT_EQ(times[2].backward_us(), 15);
  EXPECT_EQ(times[3].backward_us(), 10);
}

TEST(NodeTimes, ARangeWhoseNodesTakeNothingStaysSo) {
  Profile profile = rising_profile(4);
  profile.costs.assign(4, {});
  profile.ranges = {{0, 4, 8, 16}};
  EXPECT_EQ(forwards(profile, graph::testing::make_mlp()), (std::vector<double>{0, 0, 0, 0}));
}

TEST(NodeTimes, CopiesCostWhatTheirOriginalDoes) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8});
  const ValueId bias = b.node("embedding", {b.parameter("table", {8})}, b.fixed({8}));
  ValueId h = b.node("relu", {x}, b.batch({8}));
  h = b.node("add", {h, bias}, b.batch({8}));
  b.loss(b.node("add", {h, bias}, b.batch({8})));
  const graph::Graph planned = graph::copy_to_consumers(b.graph(), std::array{0});
  // relu, bias, add, bias', add, loss
  EXPECT_EQ(forwards(rising_profile(5), planned), (std::vector<double>{2, 1, 3, 1, 4, 5}));
}

TEST(NodeTimes, AProfileOfAnotherGraphIsRefused) {
  const graph::Graph graph = graph::testing::make_mlp();
  try {
    node_times(rising_profile(5), graph);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("costs of 5 nodes, but the graph was recorded with 4"));
  }
  Profile profile = rising_profile(4);
  profile.cost_of[1] = 4;
  EXPECT_THROW(node_times(profile, graph), Error);
  EXPECT_THROW(node_costs(profile, graph), Error);
  profile = rising_profile(4);
  profile.ranges = {{2, 5, 1, 1}};
  EXPECT_THROW(node_times(profile, graph), Error);
}

TEST(Slowdown, GrowsWithWhatIsHeldUpToWhatWasMeasured) {
  Profile profile;
  EXPECT_EQ(slowdown(profile, 1'000'000).backward, 1);
  profile.held = {.one_bytes = 100, .held_bytes = 300, .forward = 1.5, .backward = 2};
  EXPECT_EQ(slowdown(profile, 0).forward, 1);
  EXPECT_EQ(slowdown(profile, 100).forward, 1);
  EXPECT_EQ(slowdown(profile, 200).forward, 1.25);
  EXPECT_EQ(slowdown(profile, 200).backward, 1.5);
  EXPECT_EQ(slowdown(profile, 300).forward, 1.5);
  EXPECT_EQ(slowdown(profile, 3000).backward, 2);
}

TEST(NodeTimes, StagesThatAreNotCapturedTakeLonger) {
  const graph::Graph graph = graph::testing::make_mlp();
  Profile profile = rising_profile(4);
  const std::vector<NodeTime> captured = node_times(profile, graph);
  EXPECT_EQ(without_captures(profile), profile);
  EXPECT_EQ(node_times(profile, graph, NodeRuns::kUncaptured)[3].forward_us,
            captured[3].forward_us);
  profile.ranges = {{0, 4, 100, 1000}};
  profile.uncaptured = {.forward = 2, .backward = 3};
  const std::vector<NodeTime> scaled = node_times(profile, graph);
  const std::vector<NodeTime> uncaptured = node_times(profile, graph, NodeRuns::kUncaptured);
  const std::vector<NodeTime> off = node_times(without_captures(profile), graph);
  for (std::size_t p = 0; p < scaled.size(); ++p) {
    EXPECT_DOUBLE_EQ(uncaptured[p].forward_us, 2 * scaled[p].forward_us);
    EXPECT_DOUBLE_EQ(uncaptured[p].input_us, 3 * scaled[p].input_us);
    EXPECT_DOUBLE_EQ(uncaptured[p].weight_us, 3 * scaled[p].weight_us);
    EXPECT_DOUBLE_EQ(off[p].forward_us, uncaptured[p].forward_us);
    EXPECT_DOUBLE_EQ(off[p].backward_us(), uncaptured[p].backward_us());
  }
  EXPECT_FALSE(without_captures(profile).uncaptured);
}

TEST(LinkTime, IsLinearBetweenMeasuredSizes) {
  Profile profile;
  profile.links = {{LinkKind::kHost, {{100, 10, 20}, {200, 20, 30}, {400, 30, 50}}}};
  const auto alone = [&](std::int64_t bytes) {
    return link_us(profile, LinkKind::kHost, bytes, false);
  };
  EXPECT_EQ(alone(0), 10);
  EXPECT_EQ(alone(100), 10);
  EXPECT_EQ(alone(150), 15);
  EXPECT_EQ(alone(200), 20);
  EXPECT_EQ(alone(300), 25);
  EXPECT_EQ(alone(600), 40);
  EXPECT_EQ(link_us(profile, LinkKind::kHost, 300, true), 40);
  EXPECT_EQ(link_us(profile, LinkKind::kHost, 600, true), 70);
}

TEST(MessageWork, IsCopyingAndMoving) {
  StepCosts step{.copy_ns_per_byte = 10};
  EXPECT_EQ(message_work_us(step, 300), 3);
  step.messages = {{100, 10}, {200, 20}};
  EXPECT_EQ(message_work_us(step, 0), 10);
  EXPECT_EQ(message_work_us(step, 150), 1.5 + 15);
  EXPECT_EQ(message_work_us(step, 300), 3 + 30);
  EXPECT_EQ(copy_us(step, 300), 3);
}

TEST(LinkTime, BeyondAnUnevenTableTheLargestMessageDecides) {
  const auto with = [](std::vector<LinkTime> times) {
    Profile profile;
    profile.links = {{LinkKind::kHost, std::move(times)}};
    return profile;
  };
  const Profile flat = with({{100, 20, 20}, {200, 10, 10}}), one = with({{100, 10, 10}});
  EXPECT_EQ(link_us(flat, LinkKind::kHost, 400, false), 20);
  EXPECT_EQ(link_us(one, LinkKind::kHost, 300, false), 30);
  EXPECT_EQ(link_us(with({{0, 7, 7}}), LinkKind::kHost, 300, false), 7);
  EXPECT_THROW(link_us(flat, LinkKind::kNetwork, 1, false), Error);
}

}  // namespace
}  // namespace trireme::profile
