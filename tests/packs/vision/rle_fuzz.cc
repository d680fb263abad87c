// A height, a width, then any bytes: they are either compressed counts that survive the round trip,
// also through pixels, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "packs/vision/coco/rle.h"
#include "trireme/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const trireme::vision::ImageSize image{data[0], data[1]};
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  trireme::vision::Rle rle;
  try {
    rle = trireme::vision::parse_rle(image, text);
  } catch (const trireme::Error&) {
    return 0;
  }
  if (trireme::vision::parse_rle(image, to_text(rle)) != rle) std::abort();
  if (trireme::vision::from_pixels(image, to_pixels(rle)) != rle) std::abort();
  return 0;
}
