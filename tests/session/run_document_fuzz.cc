// Any bytes are either a run's document that survives the round trip byte for byte and is shown without harm, or a
// trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "tests/support/memory_file.h"
#include "trireme/error.h"
#include "trireme/session/run_document.h"

namespace session = trireme::session;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto load = [](std::span<const std::uint8_t> bytes) {
    return session::load_run(trireme::testing::MemoryFile(bytes).path());
  };
  session::RunDocument run;
  try {
    run = load({data, size});
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const session::RunDocument& document) {
    return trireme::to_document_text(session::kRunDocument, session::to_json(document));
  };
  const std::string written = text_of(run);
  if (text_of(load({reinterpret_cast<const std::uint8_t*>(written.data()), written.size()})) !=
      written) {
    std::abort();
  }
  session::show(run);
  session::changes_text(run.given, {});
  return 0;
}
