// Any bytes are either timelines that survive the round trip byte for byte and are drawn without
// harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/error.h"
#include "trireme/plan/timeline/draw.h"
#include "trireme/plan/timeline/json.h"
#include "trireme/plan/timeline/usage.h"

namespace timeline = trireme::timeline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return timeline::timelines_from_json(
        trireme::parse_document(timeline::kTimelineDocument, document, "input"));
  };
  std::vector<timeline::Timeline> timelines;
  try {
    timelines = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const std::vector<timeline::Timeline>& t) {
    return trireme::to_document_text(timeline::kTimelineDocument, timeline::to_json(t));
  };
  const std::string written = text_of(timelines);
  if (text_of(parse(written)) != written) std::abort();
  for (const timeline::Timeline& one : timelines) {
    timeline::draw(one, 80);
    timeline::show_usage(one);
  }
  return 0;
}
