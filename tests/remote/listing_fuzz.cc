// Any bytes are either a page of a listing, or a trireme::Error; and an error's code is a word.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trireme/error.h"
#include "trireme/remote/listing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  trireme::remote::error_code(text);
  try {
    for (const std::string& key : trireme::remote::parse_listing(text, "fuzz").keys) {
      if (key.empty() || key.ends_with('/')) __builtin_trap();
    }
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
