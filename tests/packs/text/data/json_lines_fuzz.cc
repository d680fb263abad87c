// Any bytes as a line of JSON and as plain text: documents in UTF-8 that are not too long, or a
// trireme::Error.

#include <utf8.h>

#include <cstdint>
#include <cstdlib>

#include "packs/text/data/documents.h"
#include "trireme/error.h"

using namespace trireme::text;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kLimit = 16;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::int64_t line : {0, 1}) {
    TextReport report;
    try {
      for (const std::string& document :
           documents_of({.bytes = bytes, .path = "input", .line = line}, kLimit, report)) {
        if (!utf8::is_valid(document.begin(), document.end())) std::abort();
        if (document.empty() || (line == 1 && document.size() > kLimit)) std::abort();
      }
    } catch (const trireme::Error&) {
      if (line == 0) std::abort();
    }
  }
  for (std::string rest = bytes; !rest.empty();) {
    const std::size_t cut = cut_position(rest, kLimit);
    if (cut == 0 || cut > kLimit) std::abort();
    rest.erase(0, cut);
  }
  return 0;
}
