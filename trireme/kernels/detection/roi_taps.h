#pragma once

// Where the samples of RoIAlign fall, on processors and on GPUs (cuda/).

#include <algorithm>
#include <cstdint>

#include "trireme/kernels/detection/roi_align.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::internal {

/// Where a sample falls between two pixels of one axis.
struct Tap {
  std::int64_t low = 0;
  std::int64_t high = 0;
  float low_weight = 0;
  float high_weight = 0;  ///< Both 0: the sample is outside.

  TRIREME_HOST_DEVICE bool is_inside() const { return low_weight + high_weight != 0; }
};

/// One axis of a region, in pixels.
struct RoiAxis {
  float start, bin;
  std::int64_t num_samples;  ///< In each bin.
};

TRIREME_INLINE_LOOP RoiAxis roi_axis(const RoiAlignOptions& options, float begin, float end,
                                     std::int64_t pooled) {
  const auto scale = static_cast<float>(options.scale);
  const float offset = options.is_aligned ? 0.5F : 0.0F;
  const float start = begin * scale - offset;
  float length = end * scale - offset - start;
  if (!options.is_aligned) length = std::max(length, 1.0F);
  const float bin = length / static_cast<float>(pooled);
  const std::int64_t num_samples = options.num_samples > 0
                                       ? options.num_samples
                                       : static_cast<std::int64_t>(__builtin_ceilf(bin));
  return {start, bin, std::max<std::int64_t>(num_samples, 0)};
}

/// Sample s of bin p, of pixels [0, size).
TRIREME_INLINE_LOOP Tap tap_of(const RoiAxis& axis, std::int64_t p, std::int64_t s,
                               std::int64_t size) {
  const float position =
      axis.start + static_cast<float>(p) * axis.bin +
      (static_cast<float>(s) + 0.5F) * axis.bin / static_cast<float>(axis.num_samples);
  if (position < -1.0F || position > static_cast<float>(size)) return {};
  const float inside = std::max(position, 0.0F);
  const auto low = static_cast<std::int64_t>(inside);
  if (low >= size - 1) return {size - 1, size - 1, 1.0F, 0.0F};
  const float part = inside - static_cast<float>(low);
  return {low, low + 1, 1.0F - part, part};
}

/// Of a sample in its bin's mean.
TRIREME_INLINE_LOOP float share_of(const RoiAxis& y, const RoiAxis& x) {
  return 1.0F / static_cast<float>(std::max<std::int64_t>(y.num_samples * x.num_samples, 1));
}

}  // namespace trireme::kernels::internal
