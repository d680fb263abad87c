// Any bytes are either a document that survives the round trip byte for byte, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/base/document.h"
#include "trireme/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr trireme::DocumentKind kKind{"f", 1};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  trireme::Json body;
  try {
    body = trireme::parse_document(kKind, text, "input");
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written = trireme::to_document_text(kKind, body);
  const trireme::Json back = trireme::parse_document(kKind, written, "written");
  if (trireme::to_document_text(kKind, back) != written) std::abort();
  return 0;
}
