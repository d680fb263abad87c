// Any bytes are either lines of `evaluations.jsonl` that survive the round trip, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "trireme/error.h"
#include "trireme/session/followed_run.h"

namespace session = trireme::session;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<session::MadeEvaluation> made;
  try {
    made = session::evaluations_of(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const std::vector<session::MadeEvaluation>& evaluations) {
    std::string text;
    for (const session::MadeEvaluation& one : evaluations) text += session::line_of(one);
    return text;
  };
  const std::string written = text_of(made);
  if (text_of(session::evaluations_of(written)) != written) std::abort();
  for (const session::MadeEvaluation& one : made) one.losses.total();
  return 0;
}
