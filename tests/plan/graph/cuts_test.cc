#include "trireme/plan/graph/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/graphs/graph_builder.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;

/// Nodes by the first letter of their names, `|` where a cut may fall: `a|bc|d`.
std::string pieces(const Graph& graph) {
  const std::vector<bool> allowed = allowed_cuts(graph);
  std::string text;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (allowed[i]) text += '|';
    text += graph.nodes[i].name.front();
  }
  EXPECT_EQ(allowed.size(), graph.nodes.size() + 1);
  EXPECT_FALSE(allowed.front());
  EXPECT_FALSE(allowed.back());
  return text;
}

TEST(Cuts, FallAnywhereInAPlainChain) { EXPECT_EQ(pieces(testing::make_mlp()), "0|r|2|l"); }

TEST(Cuts, DoNotSeparateAProductionFromAnInPlaceWrite) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId h = b.node("a", {x}, b.batch({4}));
  b.node("b", {x}, b.batch({4}));
  const ValueId view = b.node("c", {h}, b.batch({4}), {.view_of = h});
  b.write("d", {view});
  b.node("e", {h}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "abcd|e");
  EXPECT_THAT(why_forbidden(b.graph(), 2),
              HasSubstr("made by node 0 'a' at 0, is written in place"));
  EXPECT_THAT(why_forbidden(b.graph(), 2), HasSubstr("last by node 3 'd' at 3"));
  EXPECT_EQ(why_forbidden(b.graph(), 4), "");
}

TEST(Cuts, DoNotSendAViewOfWhatWasWrittenSinceBesideIt) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId w = b.parameter("w", {4, 4});
  const ValueId h = b.node("a", {x, w}, b.batch({4}));
  const ValueId stale = b.node("b", {h}, b.batch({4}), {.view_of = h});
  b.write("c", {h});
  const ValueId fresh = b.node("d", {h}, b.batch({4}), {.view_of = h});
  b.node("e", {stale}, b.batch({4}));
  b.node("f", {h, fresh}, b.batch({4}));
  b.node("g", {h, fresh}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "abcde|f|g");
  EXPECT_THAT(why_forbidden(b.graph(), 3), HasSubstr("made by node 1, of memory that was written"));
}

TEST(Cuts, TheBatchCountsAsProducedAtTheStart) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId y = b.input("y", {4});
  b.node("a", {x}, b.batch({4}));
  b.node("b", {x}, b.batch({4}));
  b.write("c", {x});
  b.node("d", {y}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "abc|d");
  EXPECT_THAT(why_forbidden(b.graph(), 1), HasSubstr("the memory of the input 'x', is written"));
}

// Each stage gets the batch as it was at first.
TEST(Cuts, DoNotSeparateAWriteToTheBatchFromItsReaders) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId y = b.input("y", {4});
  b.write("a", {x});
  b.node("b", {y}, b.batch({4}));
  b.node("c", {x}, b.batch({4}));
  b.node("d", {y}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "abc|d");
  EXPECT_THAT(why_forbidden(b.graph(), 1),
              HasSubstr("value 0 comes from outside, is written by node 0 'a' at 0"));
}

TEST(Cuts, DoNotSeparateAProductionFromAbsoluteOffsets) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId h = b.node("a", {x}, b.batch({4}));
  const ValueId i = b.node("b", {h}, b.batch({4}));
  b.node("as_strided", {i}, b.batch({4}), {.name = "c", .view_of = i});
  b.node("d", {i}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "a|bc|d");
  EXPECT_THAT(why_forbidden(b.graph(), 2), HasSubstr("absolute offsets"));
}

TEST(Cuts, KeepManyUsesOfAParameterTogether) {
  for (const int uses : {4, 5}) {
    GraphBuilder b;
    ValueId h = b.input("x", {4});
    const ValueId p = b.parameter("cell", {4});
    h = b.node("a", {h}, b.batch({4}));
    for (int i = 0; i < uses; ++i) {
      h = b.node("u", {h, p}, b.batch({4}));
      h = b.node("v", {h}, b.batch({4}));
    }
    EXPECT_EQ(pieces(b.graph()), uses == 4 ? "a|u|v|u|v|u|v|u|v" : "a|uvuvuvuvu|v");
    if (uses == 5) {
      EXPECT_THAT(why_forbidden(b.graph(), 4),
                  HasSubstr("the parameter 'cell' has more than 4 uses, from node 1 'u' at 1"));
    }
  }
}

// A rank had freed the weight that its stage used without gradient.
TEST(Cuts, KeepAUseWithoutGradientBesideTheNearestThatHasOne) {
  GraphBuilder b;
  ValueId h = b.input("x", {4});
  const ValueId w = b.parameter("w", {4}), alone = b.parameter("alone", {4});
  const auto add = [&](const char* name, std::vector<ValueId> inputs, bool trains) {
    h = b.node(name, inputs, b.batch({4}), {.flags = {.grad_mode = trains}});
  };
  add("a", {h, w}, true);
  add("b", {h}, true);
  add("c", {h, w}, false);
  add("d", {h}, true);
  add("e", {h}, true);
  add("f", {h, w}, true);
  add("g", {h, alone}, false);
  add("h", {h, w}, false);
  EXPECT_EQ(pieces(b.graph()), "abc|d|e|fgh");
  EXPECT_THAT(why_forbidden(b.graph(), 1),
              HasSubstr("the parameter 'w' is used once with and once without gradient, by node 0 "
                        "'a' at 0 and node 2 'c' at 2"));
}

TEST(Cuts, KeepTheNodesOfAWrittenBufferTogether) {
  for (const BufferPolicy policy : {BufferPolicy::kReadOnly, BufferPolicy::kBatchNorm}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {4});
    const ValueId table = b.buffer("table", {4}, policy);
    b.node("a", {x}, b.batch({4}));
    b.node("b", {x, table}, b.batch({4}));
    b.node("c", {x}, b.batch({4}));
    const ValueId view = b.node("d", {table}, b.fixed({4}), {.view_of = table});
    b.node("e", {x, view}, b.batch({4}));
    b.node("f", {x}, b.batch({4}));
    EXPECT_EQ(pieces(b.graph()), policy == BufferPolicy::kReadOnly ? "a|b|c|d|e|f" : "a|bcde|f");
    if (policy == BufferPolicy::kBatchNorm) {
      EXPECT_THAT(why_forbidden(b.graph(), 3), HasSubstr("the buffer 'table' is written"));
    }
  }
}

/// Each microbatch finds the rows as the one before left them.
TEST(Cuts, KeepTheNodesOfARescaledParameterTogether) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId w = b.parameter("w", {4, 4});
  const ValueId h = b.node("a", {x}, b.batch({4}));
  b.write("r", {w, h});
  b.graph().nodes.back().op = kRescaleRows;
  b.node("b", {h}, b.batch({4}));
  const ValueId rows = b.node("e", {w, h}, b.batch({4}));
  b.graph().nodes.back().op = "aten::embedding";
  b.node("f", {rows}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "a|rbe|f");
  EXPECT_THAT(why_forbidden(b.graph(), 2), HasSubstr("rows of the parameter 'w' are rescaled"));
  EXPECT_EQ(written_parameters(b.graph()), std::vector<int>{0});
  EXPECT_EQ(use_beside_rows(b.graph(), 0), nullptr);
  b.node("t", {w}, b.batch({4}));
  EXPECT_EQ(use_beside_rows(b.graph(), 0), &b.graph().nodes.back());
}

TEST(Cuts, DoNotSendWhatIsRagged) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId packed = b.node("p", {x}, b.batch({4}));
  b.graph().values[packed].is_ragged = true;
  const ValueId other = b.node("a", {x}, b.batch({4}));
  b.node("u", {packed, other}, b.batch({4}));
  b.node("v", {other}, b.batch({4}));
  EXPECT_EQ(pieces(b.graph()), "pau|v");
  EXPECT_THAT(why_forbidden(b.graph(), 1), HasSubstr("depends on data (packed sequences)"));
}

TEST(Cuts, ParametersDoNotCountAsProduced) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  const ValueId p = b.parameter("p", {4});
  b.node("a", {x, p}, b.batch({4}));
  b.node("as_strided", {p}, b.fixed({4}), {.name = "b", .view_of = p});
  EXPECT_EQ(pieces(b.graph()), "a|b");
}

TEST(Cuts, LieBetweenTwoNodes) {
  const Graph graph = testing::make_mlp();
  for (const int cut : {-5, 0, 4, 100}) {
    EXPECT_THAT(why_forbidden(graph, cut), HasSubstr("between two nodes, at 1 to 3"));
  }
  EXPECT_EQ(allowed_cuts(Graph{}), std::vector<bool>{false});
}

/// Of the values of one piece of memory that are used beyond the cut, one was made before a write.
bool sends_stale_view(const Graph& graph, int cut) {
  const auto positions = node_positions(graph);
  std::map<int, int> sent, stale;  // by storage
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const Value& value = graph.values[id];
    if (value.source != ValueSource::kNode || !value.requires_grad) continue;
    if (positions.at(value.producer) >= cut) continue;
    bool is_used = false, is_stale = false;
    for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
      const std::vector<ValueId> inputs = input_values(graph.nodes[position]);
      is_used |= position >= cut && std::ranges::find(inputs, id) != inputs.end();
      bool writes_memory = false, writes_it = false;
      for (const ValueId written : graph.nodes[position].writes) {
        writes_memory |= graph.values[written].storage_id == value.storage_id;
        writes_it |= written == id;
      }
      if (writes_memory) is_stale = !writes_it && positions.at(value.producer) < position;
    }
    sent[value.storage_id] += is_used ? 1 : 0;
    stale[value.storage_id] += is_used && is_stale ? 1 : 0;
  }
  return std::ranges::any_of(
      stale, [&](const auto& item) { return item.second > 0 && sent.at(item.first) > 1; });
}

/// The definition, cut by cut.
bool may_cut(const Graph& graph, int cut) {
  const auto positions = node_positions(graph);
  const auto before = [&](ValueId id) {
    const Value& value = graph.values[id];
    if (value.source == ValueSource::kInput || value.source == ValueSource::kStepScalar)
      return true;
    return value.source == ValueSource::kNode && positions.at(value.producer) < cut;
  };
  const int n = static_cast<int>(graph.nodes.size());
  for (int position = cut; position < n; ++position) {
    for (const ValueId written : graph.nodes[position].writes) {
      for (std::size_t id = 0; id < graph.values.size(); ++id) {
        if (graph.values[id].storage_id == graph.values[written].storage_id &&
            before(static_cast<ValueId>(id))) {
          return false;
        }
      }
    }
  }
  for (int position = cut; position < n; ++position) {
    for (const ValueId read : input_values(graph.nodes[position])) {
      if (graph.values[read].source != ValueSource::kInput) continue;
      for (int writer = 0; writer < cut; ++writer) {
        for (const ValueId written : graph.nodes[writer].writes) {
          if (graph.values[written].storage_id == graph.values[read].storage_id) return false;
        }
      }
    }
  }
  if (sends_stale_view(graph, cut)) return false;
  for (const UseSite& site : use_sites(graph)) {
    if (positions.at(site.nodes.front()) < cut && positions.at(site.nodes.back()) >= cut)
      return false;
  }
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.policy == BufferPolicy::kReadOnly) continue;
    bool is_before = false, is_after = false;
    for (int position = 0; position < n; ++position) {
      for (const ValueId id : input_values(graph.nodes[position])) {
        if (graph.values[id].storage_id != graph.values[buffer.value].storage_id) continue;
        (position < cut ? is_before : is_after) = true;
      }
    }
    if (is_before && is_after) return false;
  }
  return true;
}

TEST(Cuts, AgreeWithTheDefinitionOnRandomGraphs) {
  int num_allowed = 0, num_forbidden = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Graph graph = testing::make_random_graph(seed, 5 + static_cast<int>(seed % 20));
    check(graph);
    const std::vector<bool> allowed = allowed_cuts(graph);
    for (int cut = 1; cut < static_cast<int>(graph.nodes.size()); ++cut) {
      ASSERT_EQ(allowed[cut], may_cut(graph, cut)) << "seed " << seed << ", cut " << cut;
      ASSERT_EQ(allowed[cut], why_forbidden(graph, cut).empty()) << "seed " << seed;
      ++(allowed[cut] ? num_allowed : num_forbidden);
    }
  }
  EXPECT_GT(num_allowed, 200);
  EXPECT_GT(num_forbidden, 200);
}

}  // namespace
}  // namespace trireme::graph
