#include "trireme/plan/layout/matching_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graphs/graph_builder.h"
#include "trireme/error.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;

/// x, then a node per word: `-` uses no parameter, others the parameters whose letters they have;
/// then the loss. All values have one element per sample but those of `wide` nodes, `=`.
graph::Graph chain(const std::vector<std::string>& words, const std::string& parameters) {
  GraphBuilder b;
  ValueId x = b.input("x", {1});
  std::map<char, ValueId> ids;
  for (const char letter : parameters) ids[letter] = b.parameter(std::string(1, letter), {1});
  for (const std::string& word : words) {
    std::vector<ValueId> inputs = {x};
    for (const char letter : word) {
      if (ids.contains(letter)) inputs.push_back(ids.at(letter));
    }
    x = b.node("op", inputs, GraphBuilder::batch({word == "=" ? 100 : 1}), {.name = word});
  }
  b.loss(x);
  return b.graph();
}

std::vector<int> match(const std::vector<std::string>& train, const std::vector<int>& cuts,
                       const std::vector<std::string>& eval) {
  const graph::Graph planned = chain(train, "abc");
  const Plan plan = make_manual_plan(planned, "hash", cuts, {8, 2, 1});
  return matching_cuts(planned, plan, chain(eval, "abc"));
}

using Cuts = std::vector<int>;

std::vector<std::string> names_of(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

TEST(MatchingCuts, FollowTheParameters) {
  EXPECT_EQ(match({"a", "b", "c"}, {1, 2}, {"a", "b", "c"}), (Cuts{1, 2}));
  EXPECT_EQ(match({"a", "-", "b", "-", "c"}, {2, 4}, {"a", "b", "c"}), (Cuts{1, 2}));
  EXPECT_EQ(match({"a", "b", "c"}, {}, {"a", "b"}), (Cuts{}));
}

TEST(MatchingCuts, FallWhereTheFewestBytesGo) {
  EXPECT_EQ(match({"a", "b"}, {1}, {"a", "=", "-", "b"}), (Cuts{1}));
  EXPECT_EQ(match({"a", "b"}, {1}, {"=", "a", "=", "-", "b"}), (Cuts{2}));
  EXPECT_EQ(match({"a", "b"}, {1}, {"a", "=", "=", "-", "b"}), (Cuts{1}));
}

/// Towers a, b, c; stage 0 has a and the first half of each of the others.
TEST(MatchingCuts, FollowAPlanInAnotherOrder) {
  const auto towers = [](const std::vector<std::string>& names) {
    GraphBuilder b;
    std::map<char, ValueId> ends;
    const ValueId x = b.input("x", {1});
    for (const std::string& name : names) {
      const ValueId from = ends.contains(name[0]) ? ends[name[0]] : x;
      ends[name[0]] =
          b.node("op", {from, b.parameter(name, {1})}, GraphBuilder::batch({1}), {.name = name});
    }
    b.loss(b.node("add", {ends['a'], ends['b']}, GraphBuilder::batch({1})));
    return b.graph();
  };
  const graph::Graph planned = towers({"a0", "b0", "a1", "b1"});
  const graph::Graph other = towers({"a0", "a1", "b0", "b1"});
  Plan plan = make_manual_plan(planned, "hash", Cuts{2}, {8, 2, 1});
  EXPECT_THROW(matching_cuts(planned, plan, other), Error);
  plan.node_order = {0, 2, 1, 3, 4, 5};
  const graph::Graph matching = matching_graph(planned, plan, other);
  EXPECT_EQ(names_of(matching), (std::vector<std::string>{"a0", "b0", "a1", "b1", "add", "loss"}));
  EXPECT_EQ(matching_cuts(planned, plan, matching), (Cuts{2}));
}

/// v, dropout of it, a of that, b of v: a plan may have b before a, as dropout is the first use of v.
TEST(MatchingCuts, KeepNoOrderThatGradientsAloneWant) {
  const auto branches = [](bool has_dropout, const std::vector<std::string>& order) {
    GraphBuilder b;
    ValueId v = b.node("op", {b.input("x", {1}), b.parameter("v", {1})}, GraphBuilder::batch({1}),
                       {.name = "v"});
    const ValueId dropped =
        has_dropout ? b.node("op", {v}, GraphBuilder::batch({1}), {.name = "dropout"}) : v;
    std::map<std::string, ValueId> ends;
    for (const std::string& name : order) {
      ends[name] = b.node("op", {name == "a" ? dropped : v, b.parameter(name, {1})},
                          GraphBuilder::batch({1}), {.name = name});
    }
    b.loss(b.node("add", {ends["a"], ends["b"]}, GraphBuilder::batch({1})));
    return b.graph();
  };
  const graph::Graph planned = branches(true, {"b", "a"});
  Plan plan = make_manual_plan(planned, "hash", Cuts{3}, {8, 2, 1});
  plan.node_order = {0, 1, 3, 2, 4, 5};
  const graph::Graph matching = matching_graph(planned, plan, branches(false, {"a", "b"}));
  EXPECT_EQ(names_of(matching), (std::vector<std::string>{"v", "b", "a", "add", "loss"}));
  EXPECT_EQ(matching_cuts(planned, plan, matching), (Cuts{2}));
}

// The cut before it fell where no room was left for a stage without parameters.
TEST(MatchingCuts, LeaveRoomForAStageWithoutParameters) {
  EXPECT_EQ(match({"a", "-", "b"}, {1, 2}, {"a", "=", "-", "b"}), (Cuts{1, 3}));
  EXPECT_EQ(match({"a", "-", "-", "b"}, {1, 2, 3}, {"a", "=", "-", "b"}), (Cuts{1, 2, 3}));
}

TEST(MatchingCuts, TiedParametersMayBeInEitherStage) {
  EXPECT_EQ(match({"a", "b", "ac"}, {1, 2}, {"a", "b", "ac"}), (Cuts{1, 2}));
}

std::string refusal(const std::vector<std::string>& train, const Cuts& cuts,
                    const std::vector<std::string>& eval) {
  try {
    match(train, cuts, eval);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(MatchingCuts, RefuseAnotherOrderOfParameters) {
  EXPECT_THAT(refusal({"a", "b"}, {1}, {"b", "a"}),
              testing::HasSubstr("node 'a' uses some of stage 0"));
  EXPECT_THAT(refusal({"a", "b", "c"}, {1, 2}, {"a", "b", "c", "b"}),
              testing::HasSubstr("node 'b' uses some of stage 1"));
}

// A stage that only counts batches, or only drops out.
TEST(MatchingCuts, LeaveAStageEmptyThatHasNothingToRun) {
  EXPECT_EQ(match({"a", "-", "b"}, {1, 2}, {"a", "b"}), (Cuts{1, 1}));
  EXPECT_EQ(match({"-", "a"}, {1}, {"a"}), (Cuts{0}));
  EXPECT_EQ(match({"a", "b", "-"}, {1, 2}, {"a", "b"}), (Cuts{1, 2}));
}

}  // namespace
}  // namespace trireme::layout
