#pragma once

#include <cstdint>

namespace trireme::vision {

/// Of an image, in pixels.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t num_pixels() const { return height * width; }
  bool operator==(const ImageSize&) const = default;
};

}  // namespace trireme::vision
