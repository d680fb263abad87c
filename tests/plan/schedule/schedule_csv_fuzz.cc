// Any bytes are either a table of a schedule that passes `check` and survives the round trip, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trireme/error.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedule_csv.h"

namespace schedule = trireme::schedule;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  schedule::Schedule parsed;
  try {
    parsed = schedule::schedule_from_csv(text, "input");
  } catch (const trireme::Error&) {
    return 0;
  }
  schedule::check(parsed);
  if (schedule::schedule_from_csv(schedule::to_csv(parsed), "written") != parsed) std::abort();
  return 0;
}
