#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "packs/vision/kernels/roi_align.h"

namespace trireme::vision::reference {

/// Calls `use(offset, weight)` for the four pixels that a sample at (y, x) is made of.
template <typename T, typename Use>
void bilinear(const FeatureShape& shape, T y, T x, const Use& use) {
  const bool is_on_map = y >= -1 && y <= T(shape.height) && x >= -1 && x <= T(shape.width);
  if (!is_on_map) return;
  const auto split = [](T position, std::int64_t size, std::int64_t& low, std::int64_t& high) {
    position = std::max(position, T(0));
    low = std::min(static_cast<std::int64_t>(position), size - 1);
    high = std::min(low + 1, size - 1);
    return low == size - 1 ? T(0) : position - T(low);
  };
  std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  const T dy = split(y, shape.height, y0, y1);
  const T dx = split(x, shape.width, x0, x1);
  const auto offset = [&](std::int64_t row, std::int64_t column) {
    return (row * shape.width + column) * shape.channels;
  };
  use(offset(y0, x0), (1 - dy) * (1 - dx));
  use(offset(y0, x1), (1 - dy) * dx);
  use(offset(y1, x0), dy * (1 - dx));
  use(offset(y1, x1), dy * dx);
}

/// Calls `use(bin, offset, weight)` for all that a region's bins are made of.
template <typename T, typename Use>
void for_each_pixel(const RoiAlignSettings& options, const FeatureShape& shape, const T* region,
                    const Use& use) {
  const T offset = options.is_aligned ? T(0.5) : T(0);
  const T x0 = region[1] * T(options.scale) - offset;
  const T y0 = region[2] * T(options.scale) - offset;
  T width = region[3] * T(options.scale) - offset - x0;
  T height = region[4] * T(options.scale) - offset - y0;
  if (!options.is_aligned) width = std::max(width, T(1)), height = std::max(height, T(1));
  const T bin_height = height / T(options.pooled_height);
  const T bin_width = width / T(options.pooled_width);
  const auto count = [&](T bin) {
    return options.num_samples > 0 ? options.num_samples
                                   : static_cast<std::int64_t>(std::ceil(bin));
  };
  const std::int64_t rows = count(bin_height), columns = count(bin_width);
  for (std::int64_t p = 0; p < options.pooled_height; ++p) {
    for (std::int64_t q = 0; q < options.pooled_width; ++q) {
      for (std::int64_t s = 0; s < rows; ++s) {
        for (std::int64_t t = 0; t < columns; ++t) {
          const T y = y0 + T(p) * bin_height + (T(s) + T(0.5)) * bin_height / T(rows);
          const T x = x0 + T(q) * bin_width + (T(t) + T(0.5)) * bin_width / T(columns);
          bilinear(shape, y, x, [&](std::int64_t pixel, T weight) {
            use(p * options.pooled_width + q, pixel, weight / T(rows * columns));
          });
        }
      }
    }
  }
}

/// As kernels::roi_align, in any real type.
template <typename T>
void roi_align(const RoiAlignSettings& options, const FeatureShape& shape, const T* features,
               const T* regions, std::int64_t num_regions, T* out) {
  const std::int64_t num_bins = options.pooled_height * options.pooled_width;
  std::fill_n(out, num_regions * num_bins * shape.channels, T(0));
  for (std::int64_t r = 0; r < num_regions; ++r) {
    const T* map = features + static_cast<std::int64_t>(regions[r * 5]) * shape.height *
                                  shape.width * shape.channels;
    for_each_pixel(options, shape, regions + r * 5, [&](auto bin, auto pixel, T weight) {
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        out[(r * num_bins + bin) * shape.channels + c] += weight * map[pixel + c];
      }
    });
  }
}

/// As kernels::roi_align_backward.
template <typename T>
void roi_align_backward(const RoiAlignSettings& options, const FeatureShape& shape,
                        const T* gradient_out, const T* regions, std::int64_t num_regions,
                        T* gradient_features) {
  const std::int64_t num_bins = options.pooled_height * options.pooled_width;
  for (std::int64_t r = 0; r < num_regions; ++r) {
    T* map = gradient_features + static_cast<std::int64_t>(regions[r * 5]) * shape.height *
                                     shape.width * shape.channels;
    for_each_pixel(options, shape, regions + r * 5, [&](auto bin, auto pixel, T weight) {
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        map[pixel + c] += weight * gradient_out[(r * num_bins + bin) * shape.channels + c];
      }
    });
  }
}

}  // namespace trireme::vision::reference
