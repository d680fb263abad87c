// Any bytes are either timelines that survive the round trip byte for byte and are drawn without
// harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/error.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/schedule/timeline_json.h"

namespace schedule = trireme::schedule;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return schedule::timelines_from_json(
        trireme::parse_document(schedule::kTimelineDocument, document, "input"));
  };
  std::vector<schedule::Timeline> timelines;
  try {
    timelines = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const std::vector<schedule::Timeline>& t) {
    return trireme::to_document_text(schedule::kTimelineDocument, schedule::to_json(t));
  };
  const std::string written = text_of(timelines);
  if (text_of(parse(written)) != written) std::abort();
  for (const schedule::Timeline& one : timelines) {
    schedule::draw(one, 80);
    schedule::show_usage(one);
  }
  return 0;
}
