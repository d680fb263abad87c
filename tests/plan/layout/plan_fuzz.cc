// Any bytes are either a plan that survives the round trip byte for byte and is judged by `check`
// without harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/layout/layout_show.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/layout/plan_json.h"

namespace layout = trireme::layout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trireme::graph::Graph kGraph = trireme::graph::testing::make_rich_graph();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  layout::Plan plan;
  try {
    plan = layout::plan_from_json(trireme::parse_document(layout::kPlanDocument, text, "input"));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const layout::Plan& p) {
    return trireme::to_document_text(layout::kPlanDocument, layout::to_json(p));
  };
  const std::string written = text_of(plan);
  const layout::Plan back =
      layout::plan_from_json(trireme::parse_document(layout::kPlanDocument, written, "written"));
  if (text_of(back) != written) std::abort();
  try {
    layout::check(plan, plan.graph_sha256, kGraph);
  } catch (const trireme::Error&) {
    return 0;
  }
  layout::show(plan, kGraph);
  return 0;
}
