#include "trireme/plan/sharding/node_splits.h"

#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/sharding/dimension_map.h"

namespace trireme::sharding {
namespace {

using graph::ArgumentList;
using graph::Size;
using graph::ValueId;
using graph::testing::GraphBuilder;
using graph::testing::NodeOptions;

ArgumentList numbers(std::initializer_list<std::int64_t> values) {
  ArgumentList list;
  for (const std::int64_t value : values) list.push_back({Size{0, value}});
  return list;
}

/// What follows for the last node of the graph, two shards.
std::optional<NodeSplits> splits(const GraphBuilder& b, const Splits& known) {
  return node_splits(b.graph(), b.graph().nodes.back(), known, 2);
}

TEST(NodeSplits, AProductByOutputsOrASum) {
  GraphBuilder b;
  const ValueId x = b.input("x", {8}), w = b.parameter("w", {8, 12});
  const ValueId y = b.node("mm", {x, w}, b.batch({12}));
  const auto by_outputs = splits(b, {{y, {1, 3}}});
  ASSERT_TRUE(by_outputs);
  EXPECT_EQ(by_outputs->values, (Splits{{w, {1, 3}}, {y, {1, 3}}}));
  EXPECT_FALSE(by_outputs->is_sum);
  for (const Splits& known : {Splits{{x, {1, 1}}}, Splits{{w, {0, 1}}}}) {
    const auto by_inputs = splits(b, known);
    ASSERT_TRUE(by_inputs);
    EXPECT_EQ(by_inputs->values, (Splits{{x, {1, 1}}, {w, {0, 1}}}));
    EXPECT_TRUE(by_inputs->is_sum);
  }
  EXPECT_FALSE(splits(b, {{x, {1, 1}}, {y, {1, 1}}})) << "both at once";
  EXPECT_FALSE(splits(b, {{x, {1, 1}}, {w, {0, 2}}})) << "other elements of the sum";
}

TEST(NodeSplits, AProductWithABias) {
  GraphBuilder b;
  const ValueId bias = b.parameter("b", {12}), x = b.input("x", {8}), w = b.parameter("w", {8, 12});
  const ValueId y = b.node("addmm", {bias, x, w}, b.batch({12}), {.constants = numbers({1, 1})});
  EXPECT_EQ(splits(b, {{bias, {0, 1}}})->values,
            (Splits{{bias, {0, 1}}, {w, {1, 1}}, {y, {1, 1}}}));
  EXPECT_EQ(splits(b, {{x, {1, 1}}})->values, (Splits{{x, {1, 1}}, {w, {0, 1}}}));
  b.node("addmm", {bias, x, w}, b.batch({12}), {.constants = numbers({1, 2})});
  EXPECT_FALSE(splits(b, {{x, {1, 1}}})) << "scaled";
}

TEST(NodeSplits, HeadsOfProducts) {
  GraphBuilder b;
  const ValueId q = b.input("q", {4, 5, 6}), k = b.input("k", {4, 6, 5});
  const ValueId scores = b.node("matmul", {q, k}, b.batch({4, 5, 5}));
  EXPECT_EQ(splits(b, {{scores, {1, 1}}})->values,
            (Splits{{q, {1, 1}}, {k, {1, 1}}, {scores, {1, 1}}}));
  EXPECT_TRUE(splits(b, {{q, {3, 1}}})->is_sum);
}

TEST(NodeSplits, ChunksHaveTheBlocksOfTheWhole) {
  GraphBuilder b;
  const ValueId x = b.input("x", {12});
  b.node("chunk", {x}, b.batch({4}), {.constants = numbers({3, -1})});
  graph::Node& node = b.graph().nodes.back();
  for (int i = 0; i < 2; ++i) {
    b.graph().values.push_back(b.graph().values[node.outputs.front()]);
    node.outputs.push_back(static_cast<ValueId>(b.graph().values.size()) - 1);
  }
  node.output_lists = {3};
  const auto from_output = splits(b, {{node.outputs[1], {1, 1}}});
  ASSERT_TRUE(from_output);
  EXPECT_EQ(from_output->values.at(x), (TensorSplit{1, 3}));
  EXPECT_EQ(from_output->values.at(node.outputs[2]), (TensorSplit{1, 1}));
  EXPECT_EQ(splits(b, {{x, {1, 6}}})->values.at(node.outputs[0]), (TensorSplit{1, 2}));
  EXPECT_FALSE(splits(b, {{x, {1, 1}}})) << "a shard would have parts of other chunks";
}

TEST(NodeSplits, NothingAlongWhatMeets) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 6});
  const ValueId y = b.node("softmax", {x}, b.batch({4, 6}), {.constants = numbers({-1})});
  EXPECT_TRUE(splits(b, {{y, {1, 1}}}));
  EXPECT_FALSE(splits(b, {{y, {2, 1}}}));
  const ValueId w = b.parameter("w", {6});
  ArgumentList last = {{numbers({6})}, {graph::ValueRef{w}}};
  const ValueId z = b.node("rms_norm", {x}, b.batch({4, 6}), {.constants = last});
  EXPECT_EQ(splits(b, {{z, {1, 1}}})->values, (Splits{{x, {1, 1}}, {z, {1, 1}}}));
  EXPECT_FALSE(splits(b, {{x, {2, 1}}}));
  b.node("unknown", {x}, b.batch({4, 6}));
  EXPECT_FALSE(splits(b, {{x, {1, 1}}}));
}

TEST(NodeSplits, WhatIsRepeatedIsWhole) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 6}), y = b.input("y", {1, 6}), c = b.parameter("c", {4, 1});
  const ValueId first = b.node("add", {x, y}, b.batch({4, 6}));
  EXPECT_EQ(splits(b, {{x, {1, 1}}})->values, (Splits{{x, {1, 1}}, {first, {1, 1}}}));
  const ValueId second = b.node("mul", {x, c}, b.batch({4, 6}));
  EXPECT_EQ(splits(b, {{x, {1, 1}}})->values, (Splits{{x, {1, 1}}, {c, {0, 1}}, {second, {1, 1}}}));
}

TEST(NodeSplits, DimensionsThatMove) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 6});
  const auto moved = [&](const std::string& op, const std::vector<Size>& shape,
                         ArgumentList constants) {
    b.node(op, {x}, shape, {.constants = std::move(constants)});
    const auto found = splits(b, {{x, {1, 1}}});
    return found ? found->values.at(b.graph().nodes.back().outputs.front()).dim : -1;
  };
  EXPECT_EQ(moved("transpose", b.batch({6, 4}), numbers({1, -1})), 2);
  EXPECT_EQ(moved("permute", {{0, 4}, {0, 6}, {1, 0}}, {{numbers({1, 2, 0})}}), 0);
  EXPECT_EQ(moved("unsqueeze", b.batch({1, 4, 6}), numbers({1})), 2);
  EXPECT_EQ(moved("select", b.batch({4}), numbers({2, 0})), 1);
  EXPECT_EQ(moved("select", b.batch({6}), numbers({1, 0})), -1);
  EXPECT_EQ(moved("slice", b.batch({4, 3}), numbers({2, 0, 3, 1})), 1);
  EXPECT_EQ(moved("slice", b.batch({2, 6}), numbers({1, 0, 2, 1})), -1);
  EXPECT_EQ(moved("flip", b.batch({4, 6}), {{numbers({2})}}), 1);
  EXPECT_EQ(moved("flip", b.batch({4, 6}), {{numbers({1})}}), -1);
  EXPECT_EQ(moved("unfold", b.batch({4, 5, 2}), numbers({2, 2, 1})), 1);
}

TEST(NodeSplits, ColumnsOfATable) {
  GraphBuilder b;
  const ValueId table = b.parameter("table", {32, 4}), indices = b.input("i", {5});
  const ValueId rows = b.node("embedding", {table, indices}, b.batch({5, 4}));
  EXPECT_EQ(splits(b, {{rows, {2, 1}}})->values, (Splits{{table, {1, 1}}, {rows, {2, 1}}}));
  EXPECT_FALSE(splits(b, {{table, {0, 1}}})) << "rows";
}

TEST(NodeSplits, HeadsOfAttentionWithoutDropout) {
  GraphBuilder b;
  const ValueId q = b.input("q", {5, 4, 6}), k = b.input("k", {5, 4, 6}),
                v = b.input("v", {5, 4, 6});
  const auto with_dropout = [&](double probability) {
    ArgumentList rest = {{}, {}, {false}, {graph::Real{0, probability}}};
    b.node("attention", {q, k, v}, b.batch({5, 4, 6}), {.constants = rest});
    b.graph().nodes.back().op = "trireme::attention";
    return splits(b, {{q, {2, 1}}});
  };
  ASSERT_TRUE(with_dropout(0));
  EXPECT_EQ(with_dropout(0)->values.at(v), (TensorSplit{2, 1}));
  EXPECT_FALSE(with_dropout(0.1));
}

TEST(NodeSplits, RandomNodesButDropoutsOfDenseValuesAreLeft) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 6});
  ArgumentList rest = {{graph::Real{0, 0.5}}, {true}};
  b.node("dropout", {x}, b.batch({4, 6}), {.constants = rest, .flags = {.random = true}});
  EXPECT_TRUE(splits(b, {{x, {1, 1}}}));
  b.graph().values[x].strides = {{0, 24}, {0, 1}, {0, 4}};
  EXPECT_FALSE(splits(b, {{x, {1, 1}}})) << "a mask follows memory";
  const ValueId y = b.input("y", {4, 6});
  b.node("add", {y}, b.batch({4, 6}), {.flags = {.random = true}});
  EXPECT_FALSE(splits(b, {{y, {1, 1}}}));
}

TEST(NodeSplits, SizesOfOneShard) {
  GraphBuilder b;
  const ValueId x = b.input("x", {12});
  b.node("view", {x}, b.batch({3, 4}),
         {.constants = {{ArgumentList{{Size{1, 0}}, {Size{0, 3}}, {Size{0, 4}}}}}});
  graph::Node view = b.graph().nodes.back();
  make_local(view, b.graph(), *splits(b, {{x, {1, 3}}}), 2);
  const auto sizes = [&](const graph::Node& node, std::size_t index) {
    const auto& list = std::get<ArgumentList>(node.inputs[index].content);
    std::vector<std::int64_t> result;
    for (const auto& item : list) result.push_back(std::get<Size>(item.content).at(7));
    return result;
  };
  EXPECT_EQ(sizes(view, 1), (std::vector<std::int64_t>{7, 3, 2}));
  ArgumentList apart = {{Size{0, -1}}, {numbers({3, 4})}};
  b.node("unflatten", {x}, b.batch({3, 4}), {.constants = apart});
  graph::Node unflatten = b.graph().nodes.back();
  make_local(unflatten, b.graph(), *splits(b, {{x, {1, 3}}}), 2);
  EXPECT_EQ(sizes(unflatten, 2), (std::vector<std::int64_t>{3, 2}));
}

}  // namespace
}  // namespace trireme::sharding
