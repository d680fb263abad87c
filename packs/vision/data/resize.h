#pragma once

#include <array>
#include <cstdint>

#include "packs/vision/data/decode.h"

namespace trireme::vision {

/// What is sampled of an image, in its pixels: a window, which may begin and end within pixels, and the
/// pixels that may be looked at.
///
///     a crop, then resized          window = bounds = the crop
///     resized, then cropped         window = the crop, in pixels of the original; bounds = the whole image
struct Sampling {
  double x = 0, y = 0;
  double width = 0, height = 0;
  PixelBox bounds;
};

/// The pixels that `resize` needs for an output of this size; within the bounds.
PixelBox pixels_for(const Sampling& sampling, ImageSize size);

/// What is made of grey levels 0 to 255, channel by channel: level * factor + offset.
struct LevelScale {
  std::array<float, 3> factor = {1, 1, 1};
  std::array<float, 3> offset = {0, 0, 0};
};

struct ResizeOptions {
  ImageSize size;           ///< Of the output.
  bool is_flipped = false;  ///< Left and right change places, after the resizing.
  LevelScale scale;
};

/// Bilinear resizing, with antialiasing where the output is smaller: the triangle that weighs pixels by their
/// distance from a sample's centre is as wide as a pixel of the output, or of the input where that is
/// wider. Weights of a sample add up to 1. Computed in f32, not rounded in between. This is PIL's
/// `resize(.., BILINEAR)` and torchvision's `antialias=True`, which round to 8 bits after each direction: at
/// most one grey level apart.
///
/// pixels   hold what `pixels_for` says at least; else kInvalidArgument.
/// out      [3, size.height, size.width], written.
/// Threads  one; the bits are the same on any processor.
/// Source   Heckbert, "Fundamentals of texture mapping and image warping", 1989, section 3.5 (filters that
///          grow with the scale).
void resize(const Pixels& pixels, const Sampling& sampling, const ResizeOptions& options,
            float* out);

}  // namespace trireme::vision
