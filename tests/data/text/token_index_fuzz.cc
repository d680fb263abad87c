// Any bytes are either an index that survives the round trip byte for byte, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/base/error.h"
#include "trireme/data/text/token_index.h"

namespace text = trireme::text;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parse = [](std::string_view document) {
    return text::token_index_from_json(
        trireme::parse_document(text::kTokensDocument, document, "input"));
  };
  text::TokenIndex index;
  try {
    index = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const text::TokenIndex& one) {
    return trireme::to_document_text(text::kTokensDocument, text::to_json(one));
  };
  const std::string written = text_of(index);
  if (text_of(parse(written)) != written) std::abort();
  index.training.num_tokens();
  return 0;
}
