#pragma once

// The passes of roi_align.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/vision/kernels/roi_align.h"
#include "packs/vision/kernels/roi_taps.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::vision::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

using vision::internal::roi_place;
using vision::internal::RoiAxis;
using vision::internal::RoiPlace;
using vision::internal::SampleRange;
using vision::internal::samples_on_map;
using vision::internal::Tap;

/// Element i of `out`.
struct PoolRegions {
  RoiAlignSettings options;
  FeatureShape shape;
  const float* features;
  const float* regions;
  float* out;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [bin, channel] = divide(i, shape.channels);
    const auto [line, q] = divide(bin, options.pooled_width);
    const auto [region, p] = divide(line, options.pooled_height);
    const RoiPlace place = roi_place(options, shape, regions + region * 5);
    out[i] = place.batch < 0 ? 0 : mean(place, p, q, channel);
  }

  TRIREME_HOST_DEVICE float mean(const RoiPlace& place, std::int64_t p, std::int64_t q,
                                 std::int64_t channel) const {
    const float* map = features + place.batch * shape.height * shape.width * shape.channels;
    const auto pixel = [&](std::int64_t row, std::int64_t column) {
      return map[(row * shape.width + column) * shape.channels + channel];
    };
    float sum = 0;
    const SampleRange on_y = samples_on_map(place.y, p, shape.height);
    const SampleRange on_x = samples_on_map(place.x, q, shape.width);
    for (std::int64_t s = on_y.first; s < on_y.end; ++s) {
      const Tap y = vision::internal::tap_of(place.y, p, s, shape.height);
      if (!y.is_inside()) continue;
      for (std::int64_t t = on_x.first; t < on_x.end; ++t) {
        const Tap x = vision::internal::tap_of(place.x, q, t, shape.width);
        if (!x.is_inside()) continue;
        sum = fma(y.low_weight * x.low_weight * place.share, pixel(y.low, x.low), sum);
        sum = fma(y.low_weight * x.high_weight * place.share, pixel(y.low, x.high), sum);
        sum = fma(y.high_weight * x.low_weight * place.share, pixel(y.high, x.low), sum);
        sum = fma(y.high_weight * x.high_weight * place.share, pixel(y.high, x.high), sum);
      }
    }
    return sum;
  }
};

template <typename Each>
void roi_align_passes(const RoiAlignSettings& options, const FeatureShape& shape,
                      const float* features, const float* regions, std::int64_t num_regions,
                      float* out, const Each& each) {
  vision::internal::check(options);
  each(num_regions * options.pooled_height * options.pooled_width * shape.channels,
       PoolRegions{options, shape, features, regions, out});
}

// ---- Backward

/// Pixels [first, last] of an axis that a region may reach.
struct Reach {
  std::int64_t first, last;
};

struct RoiReach {
  RoiPlace place;
  Reach y, x;
};

/// The reach of each region: that of its first and its last sample, outside of the map or not.
struct FindReach {
  RoiAlignSettings options;
  FeatureShape shape;
  const float* regions;
  RoiReach* reaches;

  TRIREME_HOST_DEVICE void operator()(std::int64_t r) const {
    const RoiPlace place = roi_place(options, shape, regions + r * 5);
    reaches[r] = {place, reach(place.y, options.pooled_height, shape.height),
                  reach(place.x, options.pooled_width, shape.width)};
  }

  /// A pixel more on both sides, for what rounds; inverted regions go downwards.
  TRIREME_HOST_DEVICE static Reach reach(const RoiAxis& axis, std::int64_t pooled,
                                         std::int64_t size) {
    const float end = axis.start + axis.bin * static_cast<float>(pooled);
    const float low = std::min(axis.start, end) - 2, high = std::max(axis.start, end) + 2;
    const auto limit = static_cast<float>(size);
    return {static_cast<std::int64_t>(std::min(std::max(low, 0.0F), limit)),
            static_cast<std::int64_t>(std::min(std::max(high, 0.0F), limit))};
  }
};

/// Element i of gradient_features: what all samples give it, in their order.
struct CollectGradient {
  RoiAlignSettings options;
  FeatureShape shape;
  const float* gradient_out;
  const RoiReach* reaches;
  std::int64_t num_regions;
  float* gradient_features;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [pixel, channel] = divide(i, shape.channels);
    const auto [line, column] = divide(pixel, shape.width);
    const auto [batch, row] = divide(line, shape.height);
    float sum = gradient_features[i];
    for (std::int64_t r = 0; r < num_regions; ++r) {
      const RoiReach& reach = reaches[r];
      if (reach.place.batch != batch || row < reach.y.first || row > reach.y.last ||
          column < reach.x.first || column > reach.x.last) {
        continue;
      }
      const std::int64_t bins = r * options.pooled_height * options.pooled_width;
      sum =
          add_region(reach.place, row, column, gradient_out + bins * shape.channels + channel, sum);
    }
    gradient_features[i] = sum;
  }

  TRIREME_HOST_DEVICE float add_region(const RoiPlace& place, std::int64_t row, std::int64_t column,
                                       const float* gradient, float sum) const {
    for (std::int64_t p = 0; p < options.pooled_height; ++p) {
      if (!meets(place.y, p, shape.height, row)) continue;
      for (std::int64_t q = 0; q < options.pooled_width; ++q) {
        if (!meets(place.x, q, shape.width, column)) continue;
        const float g = gradient[(p * options.pooled_width + q) * shape.channels];
        sum = add_bin(place, p, q, row, column, g, sum);
      }
    }
    return sum;
  }

  /// Whether a sample of bin p reaches the pixel.
  TRIREME_HOST_DEVICE static bool meets(const RoiAxis& axis, std::int64_t p, std::int64_t size,
                                        std::int64_t pixel) {
    const SampleRange on_map = samples_on_map(axis, p, size);
    for (std::int64_t s = on_map.first; s < on_map.end; ++s) {
      const Tap tap = vision::internal::tap_of(axis, p, s, size);
      if (tap.is_inside() && (tap.low == pixel || tap.high == pixel)) return true;
    }
    return false;
  }

  TRIREME_HOST_DEVICE float add_bin(const RoiPlace& place, std::int64_t p, std::int64_t q,
                                    std::int64_t row, std::int64_t column, float g,
                                    float sum) const {
    const SampleRange on_y = samples_on_map(place.y, p, shape.height);
    const SampleRange on_x = samples_on_map(place.x, q, shape.width);
    for (std::int64_t s = on_y.first; s < on_y.end; ++s) {
      const Tap y = vision::internal::tap_of(place.y, p, s, shape.height);
      if (!y.is_inside()) continue;
      for (std::int64_t t = on_x.first; t < on_x.end; ++t) {
        const Tap x = vision::internal::tap_of(place.x, q, t, shape.width);
        if (!x.is_inside()) continue;
        for (int corner = 0; corner < 4; ++corner) {
          const bool is_low_y = corner < 2, is_low_x = corner % 2 == 0;
          if ((is_low_y ? y.low : y.high) != row || (is_low_x ? x.low : x.high) != column) continue;
          sum = fma((is_low_y ? y.low_weight : y.high_weight) *
                        (is_low_x ? x.low_weight : x.high_weight) * place.share,
                    g, sum);
        }
      }
    }
    return sum;
  }
};

struct RoiSpace {
  RoiSpace(Cutter cutter, std::int64_t num_regions)
      : reaches(cutter.take<RoiReach>(num_regions)), bytes(cutter.bytes()) {}

  RoiReach* reaches;
  std::int64_t bytes;
};

template <typename Each>
void roi_align_backward_passes(const RoiAlignSettings& options, const FeatureShape& shape,
                               const float* gradient_out, const float* regions,
                               std::int64_t num_regions, float* gradient_features,
                               std::span<std::byte> workspace, const Each& each) {
  vision::internal::check(options);
  const RoiSpace space(Cutter(workspace), num_regions);
  check_workspace("roi_align_backward", workspace, space.bytes);
  each(num_regions, FindReach{options, shape, regions, space.reaches});
  each(
      shape.batch * shape.height * shape.width * shape.channels,
      CollectGradient{options, shape, gradient_out, space.reaches, num_regions, gradient_features});
}

}  // namespace trireme::vision::cuda::internal
