// Any bytes are either a sharding that survives the round trip byte for byte and with which a graph of shards is made or
// refused, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "tests/plan/sharding/convolutions.h"
#include "tests/plan/sharding/layers.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/sharding/sharded_graph.h"
#include "trireme/plan/sharding/sharding_json.h"

namespace sharding = trireme::sharding;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trireme::graph::Graph kLayer = sharding::test::feed_forward();
  static const trireme::graph::Graph kImages = sharding::test::images();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return sharding::sharding_from_json(
        trireme::parse_document(sharding::kShardingDocument, document, "input"));
  };
  sharding::Sharding read;
  try {
    read = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const sharding::Sharding& one) {
    return trireme::to_document_text(sharding::kShardingDocument, sharding::to_json(one));
  };
  const std::string written = text_of(read);
  if (text_of(parse(written)) != written) std::abort();
  const auto& graph = read.kind == sharding::SplitKind::kTiles ? kImages : kLayer;
  read.graph_sha256 = trireme::graph::graph_sha256(graph);  // more than a fuzzer can guess
  try {
    sharding::sharded_graph(graph, read, {0, 1});
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
