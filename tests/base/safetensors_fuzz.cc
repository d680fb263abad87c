// Any bytes are either tensors that survive the round trip byte for byte, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "trireme/base/safetensors.h"
#include "trireme/error.h"

namespace safetensors = trireme::safetensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  safetensors::Content content;
  try {
    content = safetensors::parse(bytes, "input");
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::vector<std::byte> written = safetensors::to_bytes(content.tensors, content.metadata);
  const safetensors::Content back = safetensors::parse(written, "written");
  if (safetensors::to_bytes(back.tensors, back.metadata) != written) std::abort();
  return 0;
}
