#pragma once

#include <cstdint>
#include <span>

#include "packs/vision/coco/rle.h"

namespace trireme::vision {

/// A detection's soft mask, local to its box.
struct SoftMask {
  std::span<const float> values;  ///< [side][side], row after row.
  std::int64_t side = 0;          ///< 1 or more, at most 4096.

  float left = 0, top = 0, right = 0, bottom = 0;  ///< The box, in pixels.
};

/// The mask of the whole image that torchvision's `paste_masks_in_image` (padding 1) and
/// `> threshold` give, encoded without the image being made:
///
///     m = side + 2 with a border of zeros, so that edges fade out; the box grows with it around
///     its centre by (side + 2) / side; its corners are cut off to whole numbers (toward zero)
///     pixels right - left + 1, bottom - top + 1, each at least 1, sampled bilinearly from m with
///     pixel centres at halves (align_corners=False); what lies outside the image is left out
///
/// All in f32, each operation rounded: a value that torch's fused arithmetic puts on the other side
/// of the threshold is within 1e-6 of it.
///
/// Errors   kInvalidArgument where the values are not side x side or the box is not finite or
///          beyond +-1e8; kCorruptData for the image's size.
/// Cost     six operations for each pixel of the box that is in the image.
Rle paste(ImageSize image, const SoftMask& mask, float threshold = 0.5F);

}  // namespace trireme::vision
