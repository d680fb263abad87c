#include "trireme/plan/graph/ancestor_finder.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

/// Graphs with views, writes and buffers: the same as the walk through all nodes.
TEST(AncestorFinder, IsWhatAncestorsSays) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 100; ++round) {
    const Graph graph = testing::make_random_graph(random(), 4 + static_cast<int>(random() % 30));
    const AncestorFinder finder(graph);
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
      const std::vector<int> expected = ancestors(graph, std::vector{id});
      EXPECT_EQ(finder.find(id, graph.nodes.size()), expected);
      if (expected.empty()) continue;
      EXPECT_EQ(finder.find(id, expected.size()), expected);
      EXPECT_FALSE(finder.find(id, expected.size() - 1).has_value());
    }
    if (HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace trireme::graph
