#include "trireme/plan/graph/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/json.h"

namespace trireme::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> after(const std::function<void(Graph&)>& change) {
  const Graph before = testing::make_mlp();
  Graph now = before;
  change(now);
  return differences(before, now);
}

// Another dropout was two hashes.
TEST(Difference, IsSaidInWords) {
  EXPECT_THAT(after([](Graph&) {}), IsEmpty());
  EXPECT_THAT(after([](Graph& g) { g.nodes[1].inputs.push_back({Real{.fixed = 0.5}}); }),
              ElementsAre("node 1 '" + testing::make_mlp().nodes[1].name +
                          "': other numbers of arguments"));
  EXPECT_THAT(after([](Graph& g) { g.values[1].shape[0].fixed = 12; }),
              ElementsAre("parameter '0.weight': f32[16, 8] -> f32[12, 8]"));
  EXPECT_THAT(after([](Graph& g) { g.values[1].requires_grad = false; }),
              ElementsAre("parameter '0.weight': f32[16, 8] -> f32[16, 8] frozen"));
  EXPECT_THAT(after([](Graph& g) { g.parameters[0].name = "first"; }),
              ElementsAre("parameter '0.weight' is gone", "parameter 'first' is new"));
  EXPECT_THAT(after([](Graph& g) { g.losses[0].coefficient = 0.5; }),
              ElementsAre("loss '" + testing::make_mlp().losses[0].name +
                          "': mean, coefficient 1.0 -> mean, coefficient 0.5"));
  EXPECT_THAT(after([](Graph& g) { g.nodes[1].op = "aten::gelu"; }),
              ElementsAre("node 1 '" + testing::make_mlp().nodes[1].name +
                          "': " + testing::make_mlp().nodes[1].op + " -> aten::gelu"));
}

TEST(Difference, AConstantArgumentIsNamedByItsOperator) {
  Graph before = testing::make_mlp(), now = before;
  before.nodes[2].inputs.push_back({Real{.fixed = 0.1}});
  now.nodes[2].inputs.push_back({Real{.fixed = 0.2}});
  const Node& node = now.nodes[2];
  EXPECT_THAT(differences(before, now), ElementsAre("node " + std::to_string(node.id) + " '" +
                                                    node.name + "': " + node.op + " 0.1 -> 0.2"));
}

TEST(Difference, WhatIsNoPartOfTheIdentityIsNone) {
  EXPECT_THAT(after([](Graph& g) {
                g.torch_version = "3.0";
                g.nodes[0].name = "other";
              }),
              IsEmpty());
}

TEST(Difference, ALineNamesTheFirstOfMany) {
  EXPECT_EQ(differences_text({"a", "b"}), "a; b");
  EXPECT_EQ(differences_text({"a", "b", "c", "d", "e"}), "a; b; c; and 2 more");
}

}  // namespace
}  // namespace trireme::graph
