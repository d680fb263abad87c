#include "packs/vision/kernels/roi_align.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "packs/vision/kernels/roi_taps.h"
#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision {
namespace {

using internal::RoiAxis;
using internal::Tap;

constexpr std::int64_t kChannelsAtOnce = 64;  // of a thread's share in the backward

/// The samples of all bins along one axis that are on the map.
struct Axis {
  std::vector<Tap> taps;
  std::vector<std::int64_t> begins;  ///< [pooled + 1] of each bin's.

  std::span<const Tap> bin(std::int64_t p) const {
    return std::span(taps).subspan(begins[p], begins[p + 1] - begins[p]);
  }
};

Axis make_axis(const RoiAxis& grid, std::int64_t pooled, std::int64_t size) {
  Axis axis{.taps = {}, .begins = {0}};
  for (std::int64_t p = 0; p < pooled; ++p) {
    const auto [first, end] = internal::samples_on_map(grid, p, size);
    for (std::int64_t s = first; s < end; ++s) {
      const Tap tap = internal::tap_of(grid, p, s, size);
      if (tap.is_inside()) axis.taps.push_back(tap);
    }
    axis.begins.push_back(std::ssize(axis.taps));
  }
  return axis;
}

/// A region on its feature map.
struct Region {
  std::int64_t batch;
  Axis y, x;
  float share;  ///< Of a sample in its bin's mean.
};

Region make_region(const RoiAlignSettings& options, const FeatureShape& shape,
                   const float* region) {
  const internal::RoiPlace place = internal::roi_place(options, shape, region);
  return {place.batch, make_axis(place.y, options.pooled_height, shape.height),
          make_axis(place.x, options.pooled_width, shape.width), place.share};
}

/// The four pixels of a sample, as offsets into a feature map, and their weights.
struct Corners {
  std::int64_t offset[4];
  float weight[4];
};

Corners corners_of(const Tap& y, const Tap& x, const FeatureShape& shape, float share) {
  const auto offset = [&](std::int64_t row, std::int64_t column) {
    return (row * shape.width + column) * shape.channels;
  };
  return {
      {offset(y.low, x.low), offset(y.low, x.high), offset(y.high, x.low), offset(y.high, x.high)},
      {y.low_weight * x.low_weight * share, y.low_weight * x.high_weight * share,
       y.high_weight * x.low_weight * share, y.high_weight * x.high_weight * share}};
}

TRIREME_INLINE_LOOP void gather_loop(const Corners& corners, const float* map,
                                     float* __restrict out, std::int64_t n) {
  const float* a = map + corners.offset[0];
  const float* b = map + corners.offset[1];
  const float* c = map + corners.offset[2];
  const float* d = map + corners.offset[3];
  const float wa = corners.weight[0], wb = corners.weight[1];
  const float wc = corners.weight[2], wd = corners.weight[3];
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = kernels::fma(
        wd, d[i], kernels::fma(wc, c[i], kernels::fma(wb, b[i], kernels::fma(wa, a[i], out[i]))));
  }
}

/// One pixel after the other: two corners may be the same.
TRIREME_INLINE_LOOP void scatter_loop(const Corners& corners, const float* __restrict gradient,
                                      float* map, std::int64_t n) {
  for (int k = 0; k < 4; ++k) {
    float* __restrict pixel = map + corners.offset[k];
    const float weight = corners.weight[k];
    TRIREME_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) pixel[i] = kernels::fma(weight, gradient[i], pixel[i]);
  }
}

TRIREME_AVX2 void gather_avx2(const Corners& corners, const float* map, float* out,
                              std::int64_t n) {
  gather_loop(corners, map, out, n);
}
TRIREME_AVX512 void gather_avx512(const Corners& corners, const float* map, float* out,
                                  std::int64_t n) {
  gather_loop(corners, map, out, n);
}
TRIREME_AVX2 void scatter_avx2(const Corners& corners, const float* gradient, float* map,
                               std::int64_t n) {
  scatter_loop(corners, gradient, map, n);
}
TRIREME_AVX512 void scatter_avx512(const Corners& corners, const float* gradient, float* map,
                                   std::int64_t n) {
  scatter_loop(corners, gradient, map, n);
}

/// Calls `body` with the corners of every sample that counts, and its bin.
template <typename Body>
void for_each_sample(const RoiAlignSettings& options, const FeatureShape& shape,
                     const Region& region, const Body& body) {
  for (std::int64_t bin = 0; bin < options.pooled_height * options.pooled_width; ++bin) {
    for (const Tap& row : region.y.bin(bin / options.pooled_width)) {
      for (const Tap& column : region.x.bin(bin % options.pooled_width)) {
        body(corners_of(row, column, shape, region.share), bin);
      }
    }
  }
}

void check_regions(const RoiAlignSettings& options, const FeatureShape& shape, const float* regions,
                   std::int64_t num_regions) {
  internal::check(options);
  for (std::int64_t r = 0; r < num_regions; ++r) {
    const float* region = regions + r * 5;
    if (internal::roi_place(options, shape, region).batch >= 0) continue;
    throw Error(ErrorKind::kInvalidArgument,
                "region " + std::to_string(r) + " must be in one of " +
                    std::to_string(shape.batch) +
                    " feature maps and, scaled, finite with bins that can be sampled; got map " +
                    std::to_string(region[0]) + ", box " + std::to_string(region[1]) + " " +
                    std::to_string(region[2]) + " " + std::to_string(region[3]) + " " +
                    std::to_string(region[4]) + ", scale " + std::to_string(options.scale));
  }
}

}  // namespace

void internal::check(const RoiAlignSettings& options) {
  if (!(options.scale > 0 && options.scale <= std::numeric_limits<float>::max())) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "RoIAlign's scale must be finite in f32 and above 0, got " + std::to_string(options.scale));
  }
  if (options.pooled_height < 1 || options.pooled_width < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "RoIAlign pools to a grid of 1 x 1 bins or more, got " +
                    std::to_string(options.pooled_height) + " x " +
                    std::to_string(options.pooled_width));
  }
}

void roi_align(const RoiAlignSettings& options, const FeatureShape& shape, const float* features,
               const float* regions, std::int64_t num_regions, float* out,
               const kernels::Spread& spread) {
  check_regions(options, shape, regions, num_regions);
  const auto gather = kernels::has_avx512() ? gather_avx512
                      : kernels::has_avx2() ? gather_avx2
                                            : gather_loop;
  const std::int64_t map_size = shape.height * shape.width * shape.channels;
  const std::int64_t out_size = options.pooled_height * options.pooled_width * shape.channels;
  spread(num_regions, [&](std::int64_t r) {
    const Region region = make_region(options, shape, regions + r * 5);
    float* own = out + r * out_size;
    std::fill_n(own, out_size, 0.0F);
    for_each_sample(options, shape, region, [&](const Corners& corners, std::int64_t bin) {
      gather(corners, features + region.batch * map_size, own + bin * shape.channels,
             shape.channels);
    });
  });
}

void roi_align_backward(const RoiAlignSettings& options, const FeatureShape& shape,
                        const float* gradient_out, const float* regions, std::int64_t num_regions,
                        float* gradient_features, const kernels::Spread& spread) {
  check_regions(options, shape, regions, num_regions);
  const auto scatter = kernels::has_avx512() ? scatter_avx512
                       : kernels::has_avx2() ? scatter_avx2
                                             : scatter_loop;
  const std::int64_t map_size = shape.height * shape.width * shape.channels;
  const std::int64_t out_size = options.pooled_height * options.pooled_width * shape.channels;
  const std::int64_t num_shares = (shape.channels + kChannelsAtOnce - 1) / kChannelsAtOnce;
  spread(shape.batch * num_shares, [&](std::int64_t piece) {
    const std::int64_t begin = piece % num_shares * kChannelsAtOnce;
    const std::int64_t count = std::min(kChannelsAtOnce, shape.channels - begin);
    for (std::int64_t r = 0; r < num_regions; ++r) {
      if (static_cast<std::int64_t>(regions[r * 5]) != piece / num_shares) continue;
      const Region region = make_region(options, shape, regions + r * 5);
      const float* own = gradient_out + r * out_size + begin;
      float* map = gradient_features + region.batch * map_size + begin;
      for_each_sample(options, shape, region, [&](const Corners& corners, std::int64_t bin) {
        scatter(corners, own + bin * shape.channels, map, count);
      });
    }
  });
}

}  // namespace trireme::vision
