#include "trireme/plan/graph/graph_show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Show, SizesNameTheBatchB) {
  const std::pair<Size, const char*> cases[] = {{{0, 8}, "8"},   {{1, 0}, "B"},
                                                {{4, 0}, "4B"},  {{4, -1}, "4B-1"},
                                                {{1, 2}, "B+2"}, {{-2, 3}, "-2B+3"}};
  for (const auto& [size, text] : cases) EXPECT_EQ(to_text(size), text);
  EXPECT_EQ(to_text(std::vector<Size>{{4, 0}, {0, 8}}), "[4B, 8]");
  EXPECT_EQ(to_text(std::vector<Size>{}), "[]");
}

TEST(Show, TheGraphReadsAsTables) {
  EXPECT_EQ(
      show(testing::make_mlp()),
      R"(training graph, 4 nodes, 3 allowed cuts, 4 parameters with 212 elements (848 B), torch 2.15.0
  graph_sha256 )" +
          graph_sha256(testing::make_mlp()) + R"(

inputs
  name  tensor     batch dimension
  x     f32[B, 8]  0

parameters
  name      tensor      elements  sites  also registered as
  0.weight  f32[16, 8]       128      1
  0.bias    f32[16]           16      1
  2.weight  f32[4, 16]        64      1
  2.bias    f32[4]             4      1

losses
  name  value  kind  coefficient
  loss      8  mean  1

nodes (| a cut may fall before it, r random, w writes, v view, n no gradients)
  marks  at  id  name      operator      outputs
          0   0  0/linear  aten::linear  f32[B, 16]
  |       1   1  relu      aten::relu    f32[B, 16]
  |       2   2  2/linear  aten::linear  f32[B, 4]
  |       3   3  loss      aten::mean    f32[]
)");
}

TEST(Show, MarksWhatIsSpecial) {
  const std::string text = show(testing::make_rich_graph());
  EXPECT_THAT(text, HasSubstr("embed.weight  f32[32, 8]       256       2  head.weight"));
  EXPECT_THAT(text, HasSubstr("frozen        f32[8]             8  frozen"));
  EXPECT_THAT(text, HasSubstr("norm.running_mean  f32[8]     batch norm"));
  EXPECT_THAT(text, HasSubstr("beta    f32[]      step scalar"));
  EXPECT_THAT(text, HasSubstr("sum, weight is value"));
  EXPECT_THAT(text, HasSubstr("0 (metric)"));
  EXPECT_THAT(text, HasSubstr("opaque:sampler"));
  EXPECT_THAT(text, HasSubstr("f32[B, 8], none, f32[B, 8], f32[B, 8]"));
  EXPECT_THAT(text, HasSubstr("f32[8B]"));
}

TEST(Table, AlignsNumbersToTheRight) {
  Table table({"name", ">count", "note"});
  table.add({"a", "1", ""});
  table.add({"longer", "1,000", "x"});
  EXPECT_EQ(table.text(1), " name    count  note\n a           1\n longer  1,000  x\n");
}

TEST(Table, WritesNumbersForPeople) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(std::int64_t{25} << 20), "25.0 MiB");
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 10), "abcd...ijk");
}

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
