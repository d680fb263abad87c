// Any bytes are either a schedule that survives the round trip byte for byte, is judged by `check`
// and drawn without harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/error.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedule_json.h"

namespace schedule = trireme::schedule;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parse = [](std::string_view document) {
    return schedule::schedule_from_json(
        trireme::parse_document(schedule::kScheduleDocument, document, "input"));
  };
  schedule::Schedule parsed;
  try {
    parsed = parse(text);
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written =
      trireme::to_document_text(schedule::kScheduleDocument, schedule::to_json(parsed));
  if (parse(written) != parsed) std::abort();
  schedule::grid(parsed);
  try {
    schedule::check(parsed);
  } catch (const trireme::Error&) {
    return 0;
  }
  schedule::most_in_flight(parsed);
  return 0;
}
