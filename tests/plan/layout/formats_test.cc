// The examples of docs/formats.md are what the code writes and reads. Here because this room can
// see all three file forms.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/graph_builder.h"
#include "trireme/base/files.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/parameter_map_json.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::layout {
namespace {

/// A linear layer and a mean.
graph::Graph example_graph() {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {2});
  const graph::ValueId weight = b.parameter("head.weight", {1, 2});
  const graph::ValueId y =
      b.node("linear", {x, weight}, b.batch({1}), {.name = "head/linear", .constants = {{}}});
  b.loss(y);
  b.graph().nodes[1].name = "mean";
  b.graph().nodes[1].inputs.push_back({});
  b.graph().torch_version = "2.15.0";
  return b.graph();
}

/// The block of JSON in the document that is a complete document of `kind`.
std::string example(const DocumentKind& kind) {
  const std::string text = read_file("docs/formats.md");
  const std::string format = "\"format\": \"" + std::string(kind.format) + "\"";
  constexpr std::string_view kBegin = "```json\n", kEnd = "```\n";
  for (std::size_t begin = 0; (begin = text.find(kBegin, begin)) != std::string::npos;) {
    begin += kBegin.size();
    const std::size_t end = text.find(kEnd, begin);
    const std::string block = text.substr(begin, end - begin);
    if (block.find(format) != std::string::npos) return block;
    begin = end;
  }
  return "";
}

TEST(Formats, TheExamplesAreWhatTheCodeWrites) {
  const graph::Graph graph = example_graph();
  const Plan plan = make_manual_plan(graph, graph::graph_sha256(graph), std::array{1}, {8, 2, 2});
  const ParameterMap map = make_parameter_map(graph, plan);
  const std::string graph_example = example(graph::kGraphDocument);
  EXPECT_EQ(graph_example, to_document_text(graph::kGraphDocument, graph::to_json(graph)));
  EXPECT_EQ(example(kPlanDocument), to_document_text(kPlanDocument, to_json(plan)));
  EXPECT_EQ(example(kParameterMapDocument), to_document_text(kParameterMapDocument, to_json(map)));
  const Json body = parse_document(graph::kGraphDocument, graph_example, "docs/formats.md");
  EXPECT_EQ(graph::graph_from_json(body), graph);
}

TEST(Formats, EveryFieldIsNamedInTheDocument) {
  const std::string text = read_file("docs/formats.md");
  for (const char* name :
       {"batch_dependent", "no_grad", "step_scalar", "read_only", "batch_norm", "counter", "eager",
        "output_lists", "copy_of", "autocast", "tie_owners", "lower_bound_ms", "peak_bytes",
        "first_norm_block", "offset_elements", "mirror", "requires_grad", "allowed_cuts"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace trireme::layout
