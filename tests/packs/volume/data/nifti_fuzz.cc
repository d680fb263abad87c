// Any bytes are either a volume with as many values as its shape has voxels, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <span>

#include "packs/volume/data/nifti.h"
#include "trireme/error.h"

namespace {

template <typename Parse>
void expect_whole(std::span<const std::byte> bytes, const Parse& parse) {
  try {
    const auto volume = parse(bytes, "input");
    const auto& [shape, num_volumes] = std::pair(volume.header.shape, volume.header.num_volumes);
    if (std::ssize(volume.values) != shape.count() * num_volumes) std::abort();
    if (volume.header.orientation.size() != 3) std::abort();
  } catch (const trireme::Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  expect_whole(bytes, trireme::volume::parse_nifti);
  expect_whole(bytes, trireme::volume::parse_nifti_labels);
  return 0;
}
