#pragma once

// Where the samples of RoIAlign fall, on processors and on GPUs (cuda/).

#include <algorithm>
#include <cstdint>

#include "packs/vision/kernels/roi_align.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision::internal {

/// Where a sample falls between two pixels of one axis.
struct Tap {
  std::int64_t low = 0;
  std::int64_t high = 0;
  float low_weight = 0;
  float high_weight = 0;  ///< Both 0: the sample is outside.

  TRIREME_HOST_DEVICE bool is_inside() const { return low_weight + high_weight != 0; }
};

/// Errors   kInvalidArgument where the scale is not finite and above 0, or the grid has no bins.
void check(const RoiAlignSettings& options);

/// Samples of a bin, where there is one for each pixel: with more, f32 would round s + 1/2.
inline constexpr float kMostSamples = 0x1p23F;

/// One axis of a region, in pixels.
struct RoiAxis {
  float start, bin;
  std::int64_t num_samples;  ///< In each bin; below 0: not finite, or more than kMostSamples.

  TRIREME_HOST_DEVICE bool is_valid() const { return num_samples >= 0; }
};

TRIREME_INLINE_LOOP bool is_finite(float x) { return x - x == 0; }

TRIREME_INLINE_LOOP RoiAxis roi_axis(const RoiAlignSettings& options, float begin, float end,
                                     std::int64_t pooled) {
  const auto scale = static_cast<float>(options.scale);
  const float offset = options.is_aligned ? 0.5F : 0.0F;
  const float start = begin * scale - offset;
  float length = end * scale - offset - start;
  if (!options.is_aligned) length = std::max(length, 1.0F);
  const float bin = length / static_cast<float>(pooled);
  if (!is_finite(start) || !is_finite(bin)) return {start, bin, -1};
  if (options.num_samples > 0) return {start, bin, options.num_samples};
  if (bin > kMostSamples) return {start, bin, -1};
  return {start, bin, static_cast<std::int64_t>(std::max(__builtin_ceilf(bin), 0.0F))};
}

/// Of sample s of bin p. Rises with s, or falls where the region is inverted, as rounding does.
TRIREME_INLINE_LOOP float position_of(const RoiAxis& axis, std::int64_t p, std::int64_t s) {
  return axis.start + static_cast<float>(p) * axis.bin +
         (static_cast<float>(s) + 0.5F) * axis.bin / static_cast<float>(axis.num_samples);
}

/// Sample s of bin p, of pixels [0, size).
TRIREME_INLINE_LOOP Tap tap_of(const RoiAxis& axis, std::int64_t p, std::int64_t s,
                               std::int64_t size) {
  const float position = position_of(axis, p, s);
  // Written so that a NaN fails.
  if (!(position >= -1.0F && position <= static_cast<float>(size)) || size < 1) return {};
  const float inside = std::max(position, 0.0F);
  const auto low = static_cast<std::int64_t>(inside);
  if (low >= size - 1) return {size - 1, size - 1, 1.0F, 0.0F};
  const float part = inside - static_cast<float>(low);
  return {low, low + 1, 1.0F - part, part};
}

/// Samples [first, end) of a bin.
struct SampleRange {
  std::int64_t first, end;
};

/// Those samples of bin p that may be on a map of `size` pixels: all others are outside. A region
/// may be far larger than the map; by bisection its cost is that of what it covers.
TRIREME_INLINE_LOOP SampleRange samples_on_map(const RoiAxis& axis, std::int64_t p,
                                               std::int64_t size) {
  const auto limit = static_cast<float>(size);
  const bool rises = axis.bin >= 0;
  // The first sample that has come to the map's near edge, or is past its far one.
  const auto first_at = [&](bool is_past) {
    std::int64_t low = 0, high = axis.num_samples;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const float position = position_of(axis, p, middle);
      const bool is_there = is_past ? (rises ? position > limit : position < -1.0F)
                                    : (rises ? position >= -1.0F : position <= limit);
      (is_there ? high : low) = is_there ? middle : middle + 1;
    }
    return low;
  };
  return {first_at(false), first_at(true)};
}

/// Of a sample in its bin's mean.
TRIREME_INLINE_LOOP float share_of(const RoiAxis& y, const RoiAxis& x) {
  return 1.0F / static_cast<float>(std::max<std::int64_t>(y.num_samples * x.num_samples, 1));
}

/// A region on its feature map.
struct RoiPlace {
  std::int64_t batch = -1;  ///< Below 0: refused.
  RoiAxis y{}, x{};
  float share = 0;
};

TRIREME_INLINE_LOOP RoiPlace roi_place(const RoiAlignSettings& options, const FeatureShape& shape,
                                       const float* region) {
  for (int i = 0; i < 5; ++i) {
    if (!is_finite(region[i])) return {};
  }
  if (region[0] < 0 || region[0] >= static_cast<float>(shape.batch)) return {};
  const RoiAxis y = roi_axis(options, region[2], region[4], options.pooled_height);
  const RoiAxis x = roi_axis(options, region[1], region[3], options.pooled_width);
  if (!y.is_valid() || !x.is_valid()) return {};
  return {static_cast<std::int64_t>(region[0]), y, x, share_of(y, x)};
}

}  // namespace trireme::vision::internal
