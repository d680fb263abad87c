// Any bytes are either costs that survive the round trip and choose an algorithm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trireme/error.h"
#include "trireme/wire/collectives/tuner.h"

namespace collectives = trireme::collectives;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parse = [](std::string_view text) {
    return collectives::costs_from_json(
        trireme::parse_document(collectives::kCostsDocument, text, "input"));
  };
  collectives::Costs costs;
  try {
    costs = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written =
      trireme::to_document_text(collectives::kCostsDocument, collectives::to_json(costs));
  if (parse(written) != costs) std::abort();
  collectives::to_text(costs);
  return 0;
}
