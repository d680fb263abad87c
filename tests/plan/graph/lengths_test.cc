#include "trireme/plan/graph/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_show.h"

namespace trireme::graph {
namespace {

using ::testing::HasSubstr;
using trireme::test::error_of;

/// The rich graph at 8 words, beside itself with other numbers at 4.
Graph at_two_lengths() {
  Graph graph = testing::make_rich_graph();
  Graph other = graph;
  other.lengths = {{"words", 4}};
  for (Value& value : other.values) {
    if (value.source == ValueSource::kNode && !value.strides.empty()) value.strides[0].fixed += 1;
  }
  graph.lengths = {{"words", 8}};
  graph.shorter = {other};
  return graph;
}

std::string refusal(const Graph& graph) {
  return error_of([&] { check(graph); }).message();
}

TEST(Lengths, AGraphHasItsFormInAFile) {
  const Graph graph = at_two_lengths();
  check(graph);
  EXPECT_EQ(graph_from_json(to_json(graph), constants_file(graph)), graph);
  Graph longest = graph;
  longest.shorter.clear();
  EXPECT_NE(graph_sha256(graph), graph_sha256(longest));
  EXPECT_THAT(show(graph), HasSubstr("samples padded to words 4, words 8"));
}

TEST(Lengths, AreFoundByIndex) {
  const Graph graph = at_two_lengths();
  EXPECT_EQ(&at_lengths(graph, {3}), &graph);
  EXPECT_EQ(&at_lengths(graph, {3, 0}), &graph.shorter[0]);
  EXPECT_THAT(error_of([&] { at_lengths(graph, {3, 1}); }).message(),
              HasSubstr("recorded at 2 padded lengths"));
}

TEST(Lengths, NothingButNumbersDiffers) {
  Graph graph = at_two_lengths();
  EXPECT_EQ(structure_difference(graph, graph.shorter[0]), "");
  graph.shorter[0].lengths = {{"words", 9}};
  EXPECT_THAT(refusal(graph), HasSubstr("'words' is not among the longest, or longer"));
  graph.shorter[0].lengths = {{"words", 8}};
  EXPECT_THAT(refusal(graph), HasSubstr("its lengths are the longest"));
  graph = at_two_lengths();
  graph.shorter[0].values.back().requires_grad = !graph.values.back().requires_grad;
  EXPECT_NE(refusal(graph), "");
  graph = at_two_lengths();
  graph.shorter[0].nodes[0].name = "other";
  EXPECT_THAT(refusal(graph), HasSubstr("differs beyond numbers"));
  graph = at_two_lengths();
  graph.shorter[0].nodes.pop_back();
  EXPECT_NE(refusal(graph), "");
}

}  // namespace
}  // namespace trireme::graph
