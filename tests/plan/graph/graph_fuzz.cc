// Any bytes are either a graph that survives the round trip byte for byte and all functions of the
// room, or a trireme::Error. The input is the document's text and, after a zero byte, the
// constants.

#include <array>
#include <cstdint>
#include <cstdlib>

#include "trireme/base/sha256.h"
#include "trireme/error.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_show.h"

namespace graph = trireme::graph;

namespace {

std::string text_of(const graph::Graph& g) {
  return trireme::to_document_text(graph::kGraphDocument, graph::to_json(g));
}

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const graph::Graph& g) {
  const std::vector<bool> allowed = graph::allowed_cuts(g);
  for (int cut = -1; cut <= static_cast<int>(g.nodes.size()) + 1; ++cut) {
    const bool is_position = cut >= 0 && cut < static_cast<int>(allowed.size());
    require(graph::why_forbidden(g, cut).empty() == (is_position && allowed[cut]));
  }
  for (const graph::Node& node : g.nodes) {
    graph::Graph copied;
    try {
      copied = graph::copy_to_consumers(g, std::array{node.id});
    } catch (const trireme::Error&) {
      continue;
    }
    graph::check(copied);
  }
  graph::show(g);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(0, input.find('\0'));
  const std::string_view rest = input.substr(std::min(input.size(), text.size() + 1));
  const auto constants = std::as_bytes(std::span(rest.data(), rest.size()));
  graph::Graph g;
  try {
    trireme::Json body = trireme::parse_document(graph::kGraphDocument, text, "input");
    // The hash of the constants is more than a fuzzer can guess.
    if (body.contains("constants") && body["constants"].is_object()) {
      body["constants"]["sha256"] = trireme::sha256(constants);
    }
    g = graph::graph_from_json(body, constants);
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written = text_of(g);
  const trireme::Json body = trireme::parse_document(graph::kGraphDocument, written, "written");
  const graph::Graph back = graph::graph_from_json(body, graph::constants_file(g));
  require(text_of(back) == written);
  use(g);
  return 0;
}
