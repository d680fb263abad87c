#include "trireme/plan/layout/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/graphs/graph_builder.h"
#include "trireme/error.h"

namespace trireme::layout {
namespace {

TEST(LargestPeak, IsTheSumOfOneRank) {
  EXPECT_EQ(largest_peak_bytes({}), 0);
  EXPECT_EQ(largest_peak_bytes({{}}), 0);
  EXPECT_EQ(largest_peak_bytes({{{"a", 5}, {"b", 2}}, {{"a", 6}}}), 7);
}

TEST(LargestPeak, DoesNotOverflow) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(largest_peak_bytes({{{"a", kMax}, {"b", 1}}}), kMax);
}

/// A table that two branches use, in the order right, left; then a copy of it for each.
TEST(PlannedGraph, HasThePlansOrderAndThenItsCopies) {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {4});
  const graph::ValueId mask = b.node("ones", {}, b.fixed({4}));           // 0
  const graph::ValueId left = b.node("left", {x, mask}, b.batch({4}));    // 1
  const graph::ValueId right = b.node("right", {x, mask}, b.batch({4}));  // 2
  const graph::ValueId w = b.parameter("w", {4});
  b.loss(b.node("cat", {left, right, w}, b.batch({4})));  // 3, 4
  Plan plan;
  const auto ops = [&] {
    std::vector<std::string> names;
    for (const graph::Node& node : planned_graph(b.graph(), plan).nodes) names.push_back(node.op);
    return names;
  };
  using Ops = std::vector<std::string>;
  EXPECT_EQ(planned_graph(b.graph(), plan), b.graph());
  plan.node_order = {0, 2, 1, 3, 4};
  EXPECT_EQ(ops(), (Ops{"aten::ones", "aten::right", "aten::left", "aten::cat", "aten::mean"}));
  plan.copied_nodes = {0};
  EXPECT_EQ(ops(), (Ops{"aten::ones", "aten::right", "aten::ones", "aten::left", "aten::cat",
                        "aten::mean"}));
  plan.node_order = {2, 0, 1, 3, 4};
  EXPECT_THROW(planned_graph(b.graph(), plan), Error);
}

/// A bias made of a parameter in two nodes, of which one consumer takes the first and two the second. Without copies their
/// order is free; with them each has a use of the parameter, whose gradients are added up by it.
TEST(PlannedGraph, ConsumersOfCopiesKeepTheirOrder) {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {4});
  const graph::ValueId a = b.node("exp", {b.parameter("p", {4})}, b.fixed({4}));  // 0
  const graph::ValueId bias = b.node("neg", {a}, b.fixed({4}));                   // 1
  const graph::ValueId c = b.node("mul", {x, a}, b.batch({4}));                   // 2
  const graph::ValueId d = b.node("mul", {x, bias}, b.batch({4}));                // 3
  const graph::ValueId e = b.node("add", {x, bias}, b.batch({4}));                // 4
  b.loss(b.node("cat", {c, d, e}, b.batch({4})));                                 // 5, 6
  Plan plan;
  plan.node_order = {0, 1, 3, 4, 2, 5, 6};
  EXPECT_NO_THROW(planned_graph(b.graph(), plan));
  plan.copied_nodes = {0, 1};
  try {
    planned_graph(b.graph(), plan);
    FAIL() << "the order gives other bits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("node 3"));
    EXPECT_THAT(error.message(), ::testing::HasSubstr("through copied nodes"));
  }
  plan.node_order = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_NO_THROW(planned_graph(b.graph(), plan));
}

}  // namespace
}  // namespace trireme::layout
