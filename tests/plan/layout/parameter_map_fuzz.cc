// Any bytes are either a parameter map that survives the round trip byte for byte and is judged by
// `check` without harm, or a trireme::Error.

#include <array>
#include <cstdint>
#include <cstdlib>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/parameter_map_json.h"
#include "trireme/plan/layout/plan_json.h"

namespace layout = trireme::layout;

namespace {

/// What the maps of the corpus are made for: the MLP in two stages with two replicas.
struct Setting {
  trireme::graph::Graph graph = trireme::graph::testing::make_mlp();
  std::string graph_sha256 = trireme::graph::graph_sha256(graph);
  trireme::layout::Plan plan =
      trireme::layout::make_manual_plan(graph, graph_sha256, std::array{2}, {4, 1, 2});
  Setting() {
    plan.roles[0].mesh.data = 2;
    plan.roles[0].placement = {0, 1, 2, 3};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Setting kSetting;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return layout::parameter_map_from_json(
        trireme::parse_document(layout::kParameterMapDocument, document, "input"));
  };
  layout::ParameterMap map;
  try {
    map = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const layout::ParameterMap& m) {
    return trireme::to_document_text(layout::kParameterMapDocument, layout::to_json(m));
  };
  const std::string written = text_of(map);
  if (text_of(parse(written)) != written) std::abort();
  // The hashes are more than a fuzzer can guess.
  map.graph_sha256 = kSetting.graph_sha256;
  map.plan_sha256 = trireme::layout::plan_sha256(kSetting.plan);
  try {
    layout::check(map, kSetting.graph, kSetting.plan);
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
