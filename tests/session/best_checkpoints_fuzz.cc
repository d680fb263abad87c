// Any bytes are either `best.json` that survives the round trip byte for byte and from which a run goes on, or a
// trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trireme/error.h"
#include "trireme/session/best_checkpoints.h"

namespace session = trireme::session;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parse = [](std::string_view text) {
    return session::best_from_json(trireme::parse_document(session::kBestDocument, text, "input"),
                                   "input");
  };
  session::BestDocument best;
  try {
    best = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const session::BestDocument& document) {
    return trireme::to_document_text(session::kBestDocument, session::to_json(document));
  };
  const std::string written = text_of(best);
  if (text_of(parse(written)) != written) std::abort();
  session::show(best);
  trireme::RunOptions options;
  options.keep_best = 2;
  options.best_by = best.by;
  options.best_is_most = best.is_most;
  session::BestCheckpoints kept(options);
  if (!kept.resume(best, 1000) || kept.steps().size() > 2) std::abort();
  return 0;
}
