// Any bytes are either a checkpoint's index that survives the round trip and is shown without harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "tests/support/memory_file.h"
#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/error.h"

namespace checkpoint = trireme::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto load = [](std::span<const std::uint8_t> bytes) {
    return checkpoint::load(trireme::testing::MemoryFile(bytes).path());
  };
  checkpoint::Index index;
  try {
    index = load({data, size});
  } catch (const trireme::Error&) {
    return 0;
  }
  const std::string written =
      trireme::to_document_text(checkpoint::kIndexDocument, checkpoint::to_json(index));
  if (load({reinterpret_cast<const std::uint8_t*>(written.data()), written.size()}) != index) {
    std::abort();
  }
  checkpoint::show(index);
  for (const auto& [key, tensor] : index.contents.tensors) {
    for (const checkpoint::Slice& slice : tensor.slices) {
      checkpoint::name_in_file(key, tensor, slice);
    }
  }
  return 0;
}
