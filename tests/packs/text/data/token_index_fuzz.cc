// Any bytes are either an index that survives the round trip byte for byte, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "packs/text/data/token_index.h"
#include "trireme/error.h"

using namespace trireme::text;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parse = [](std::string_view document) {
    return token_index_from_json(trireme::parse_document(kTokensDocument, document, "input"));
  };
  TokenIndex index;
  try {
    index = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const TokenIndex& one) {
    return trireme::to_document_text(kTokensDocument, to_json(one));
  };
  const std::string written = text_of(index);
  if (text_of(parse(written)) != written) std::abort();
  index.training.num_tokens();
  return 0;
}
