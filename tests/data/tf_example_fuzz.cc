// Any bytes are either a message whose features can be read, or a trireme::Error.

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/data/tf_example.h"
#include "trireme/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const trireme::data::TfExample example(std::as_bytes(std::span(data, size)));
    for (const std::string& name : example.names()) {
      try {
        example.read(name);
      } catch (const trireme::Error&) {
        continue;
      }
    }
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
