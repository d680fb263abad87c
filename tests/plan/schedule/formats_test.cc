// The examples of docs/formats.md are what the code writes and reads.

#include <gtest/gtest.h>

#include <array>

#include "tests/graphs/graph_builder.h"
#include "trireme/base/files.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

/// The first block of JSON in the section of `kind`.
std::string example(const DocumentKind& kind) {
  const std::string text = read_file("docs/formats.md");
  const std::size_t section = text.find("(`" + std::string(kind.format) + "`)");
  constexpr std::string_view kBegin = "```json\n";
  const std::size_t begin = text.find(kBegin, section) + kBegin.size();
  return text.substr(begin, text.find("```\n", begin) - begin);
}

/// The step of the document's graph and plan, with a global batch of 4.
StepProgram example_program() {
  graph::testing::GraphBuilder b;
  const graph::ValueId x = b.input("x", {2});
  const graph::ValueId weight = b.parameter("head.weight", {1, 2});
  b.loss(b.node("linear", {x, weight}, b.batch({1})));
  const layout::Plan plan =
      layout::make_manual_plan(b.graph(), graph::graph_sha256(b.graph()), std::array{1}, {4, 2, 2});
  return make_step_program(b.graph(), plan, layout::make_parameter_map(b.graph(), plan), {});
}

TEST(Formats, TheExamplesAreWhatTheCodeWrites) {
  const Schedule schedule = make_schedule("interleaved", 2, 2);
  EXPECT_EQ(example(kScheduleDocument), to_document_text(kScheduleDocument, to_json(schedule)));
  EXPECT_EQ(example(kStepProgramDocument),
            to_document_text(kStepProgramDocument, to_json(example_program())));
}

}  // namespace
}  // namespace trireme::schedule
