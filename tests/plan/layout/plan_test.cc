#include "trireme/plan/layout/plan.h"

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

}  // namespace
}  // namespace trireme::layout
