// Any bytes are either a step program that survives the round trip byte for byte and is judged by
// `check` and by the execution without harm, or a trireme::Error.

#include <array>
#include <cstdint>
#include <cstdlib>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/rendezvous.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"

namespace schedule = trireme::schedule;

namespace {

/// What `mlp.json` of the corpus is made for: the MLP in two stages with two replicas.
struct Setting {
  schedule::StepFacts facts;
  schedule::Schedule order = schedule::make_schedule("interleaved", 2, 2);

  Setting() {
    const trireme::graph::Graph graph = trireme::graph::testing::make_mlp();
    trireme::layout::Plan plan = trireme::layout::make_manual_plan(
        graph, trireme::graph::graph_sha256(graph), std::array{2}, {4, 1, 2});
    plan.roles[0].mesh.data = 2;
    plan.roles[0].placement = {0, 1, 2, 3};
    plan.bucket_bytes = 64;
    const auto map = trireme::layout::make_parameter_map(graph, plan);
    facts = schedule::step_facts(graph, plan, map, {});
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Setting kSetting;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return schedule::step_program_from_json(
        trireme::parse_document(schedule::kStepProgramDocument, document, "input"));
  };
  schedule::StepProgram program;
  try {
    program = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written =
      trireme::to_document_text(schedule::kStepProgramDocument, schedule::to_json(program));
  if (parse(written) != program) std::abort();
  try {
    schedule::run_rendezvous(program);
    schedule::most_held(program);
    schedule::check(program, kSetting.order, kSetting.facts);
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
