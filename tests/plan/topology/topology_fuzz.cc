// Any bytes are either a topology that survives the round trip byte for byte and is judged by
// `check` without harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/error.h"
#include "trireme/plan/topology/topology_json.h"

namespace topology = trireme::topology;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topology::Topology read;
  try {
    read = topology::topology_from_json(
        trireme::parse_document(topology::kTopologyDocument, text, "input"));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const topology::Topology& t) {
    return trireme::to_document_text(topology::kTopologyDocument, topology::to_json(t));
  };
  const std::string written = text_of(read);
  const topology::Topology back = topology::topology_from_json(
      trireme::parse_document(topology::kTopologyDocument, written, "written"));
  if (text_of(back) != written) std::abort();
  try {
    topology::check(read);
  } catch (const trireme::Error&) {
    return 0;
  }
  topology::shared_cores(read);
  return 0;
}
