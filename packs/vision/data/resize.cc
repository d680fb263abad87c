// Two passes, each along one direction. Rows first: the rows that an output row needs are added up, weighted,
// over all their columns, which are next to each other in memory. Then columns: three neighbouring
// numbers are red, green and blue, so four numbers are loaded at once for each weight, and the last is left.

#include "packs/vision/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kChannels = 3;

/// Along one direction: output o is the sum of weight[o * most + k] times pixel first[o] + k.
struct Taps {
  std::int64_t most = 0;            ///< Weights of an output, at most; others are 0.
  std::vector<std::int64_t> first;  ///< Pixels of the image.
  std::vector<std::int64_t> count;
  std::vector<float> weight;
};

/// One direction of a Sampling.
struct Span {
  double begin, length;
  std::int64_t low, high;  ///< Pixels [low, high) may be looked at.
};

Span along_x(const Sampling& sampling) {
  const PixelBox& bounds = sampling.bounds;
  return {sampling.x, sampling.width, bounds.x, bounds.x + bounds.width};
}

Span along_y(const Sampling& sampling) {
  const PixelBox& bounds = sampling.bounds;
  return {sampling.y, sampling.height, bounds.y, bounds.y + bounds.height};
}

/// Pixels [first, end) of an output.
struct Reach {
  std::int64_t first, end;
};

/// Where the triangle of an output is above 0; a pixel at least.
Reach reach_of(const Span& span, double center, double radius) {
  const auto low = static_cast<double>(span.low), high = static_cast<double>(span.high);
  const double first = std::clamp(std::floor(center - radius + 0.5), low, high - 1);
  const double end = std::clamp(std::floor(center + radius + 0.5), first + 1, high);
  return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(end)};
}

double center_of(const Span& span, std::int64_t output, std::int64_t size) {
  return span.begin +
         (static_cast<double>(output) + 0.5) * (span.length / static_cast<double>(size));
}

double radius_of(const Span& span, std::int64_t size) {
  return std::max(span.length / static_cast<double>(size), 1.0);
}

Taps make_taps(const Span& span, std::int64_t size) {
  const double radius = radius_of(span, size);
  Taps taps{.most = static_cast<std::int64_t>(std::ceil(radius)) * 2 + 1};
  taps.weight.resize(static_cast<std::size_t>(size * taps.most));
  for (std::int64_t o = 0; o < size; ++o) {
    const double center = center_of(span, o, size);
    const Reach reach = reach_of(span, center, radius);
    double sum = 0;
    std::vector<double> weights;
    for (std::int64_t p = reach.first; p < reach.end; ++p) {
      const double distance = std::abs(static_cast<double>(p) + 0.5 - center) / radius;
      weights.push_back(std::max(1 - distance, 0.0));
      sum += weights.back();
    }
    if (sum == 0) weights.assign(weights.size(), sum = 1);  // of one pixel, at a window's end
    for (std::size_t k = 0; k < weights.size(); ++k) {
      taps.weight[static_cast<std::size_t>(o * taps.most) + k] =
          static_cast<float>(weights[k] / sum);
    }
    taps.first.push_back(reach.first);
    taps.count.push_back(reach.end - reach.first);
  }
  return taps;
}

Reach reach_of_all(const Span& span, std::int64_t size) {
  const double radius = radius_of(span, size);
  return {reach_of(span, center_of(span, 0, size), radius).first,
          reach_of(span, center_of(span, size - 1, size), radius).end};
}

/// out = weight * row, or is added to it.
template <bool IsFirst>
TRIREME_INLINE_LOOP void add_row_loop(const std::uint8_t* __restrict row, float weight,
                                      std::int64_t n, float* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float product = weight * static_cast<float>(row[i]);
    out[i] = IsFirst ? product : out[i] + product;
  }
}

/// The weighted sum of `count` rows that are `stride` bytes apart.
TRIREME_INLINE_LOOP void sum_rows_loop(const std::uint8_t* row, std::int64_t stride,
                                       const float* weights, std::int64_t count, std::int64_t n,
                                       float* out) {
  add_row_loop<true>(row, weights[0], n, out);
  for (std::int64_t k = 1; k < count; ++k) {
    add_row_loop<false>(row + k * stride, weights[k], n, out);
  }
}

void sum_rows_portable(const std::uint8_t* row, std::int64_t stride, const float* weights,
                       std::int64_t count, std::int64_t n, float* out) {
  sum_rows_loop(row, stride, weights, count, n, out);
}
TRIREME_AVX2 void sum_rows_avx2(const std::uint8_t* row, std::int64_t stride, const float* weights,
                                std::int64_t count, std::int64_t n, float* out) {
  sum_rows_loop(row, stride, weights, count, n, out);
}

using Four = float __attribute__((vector_size(16)));

/// One row of the output. row   columns from `begin` on, and a number behind them.
void sum_columns(const float* row, std::int64_t begin, const Taps& taps,
                 const ResizeOptions& options, float* out) {
  const auto [height, width] = options.size;
  const std::int64_t plane = width * height;
  const auto& [factor, offset] = options.scale;
  const Four factors = {factor[0], factor[1], factor[2], 0};
  const Four offsets = {offset[0], offset[1], offset[2], 0};
  for (std::int64_t o = 0; o < width; ++o) {
    const auto at = static_cast<std::size_t>(o);
    const float* weight = taps.weight.data() + o * taps.most;
    const float* from = row + (taps.first[at] - begin) * kChannels;
    Four sum = {};
    for (std::int64_t k = 0; k < taps.count[at]; ++k, from += kChannels) {
      Four pixel;
      std::memcpy(&pixel, from, sizeof pixel);
      sum += weight[k] * pixel;
    }
    sum = sum * factors + offsets;
    float* to = out + (options.is_flipped ? width - 1 - o : o);
    to[0] = sum[0];
    to[plane] = sum[1];
    to[2 * plane] = sum[2];
  }
}

void check_pixels(const Pixels& pixels, const Sampling& sampling, ImageSize size) {
  const PixelBox needed = pixels_for(sampling, size), &box = pixels.box;
  const bool is_there = needed.x >= box.x && needed.x + needed.width <= box.x + box.width &&
                        needed.y >= box.y && needed.y + needed.height <= box.y + box.height;
  if (is_there) return;
  throw Error(ErrorKind::kInvalidArgument,
              "resizing: " + std::to_string(needed.width) + " x " + std::to_string(needed.height) +
                  " pixels at (" + std::to_string(needed.x) + ", " + std::to_string(needed.y) +
                  ") are needed, there are " + std::to_string(box.width) + " x " +
                  std::to_string(box.height) + " at (" + std::to_string(box.x) + ", " +
                  std::to_string(box.y) + ")");
}

}  // namespace

PixelBox pixels_for(const Sampling& sampling, ImageSize size) {
  const Reach x = reach_of_all(along_x(sampling), size.width);
  const Reach y = reach_of_all(along_y(sampling), size.height);
  return {.x = x.first, .y = y.first, .width = x.end - x.first, .height = y.end - y.first};
}

void resize(const Pixels& pixels, const Sampling& sampling, const ResizeOptions& options,
            float* out) {
  const auto [height, width] = options.size;
  check_pixels(pixels, sampling, options.size);
  const Taps columns = make_taps(along_x(sampling), width);
  const Taps rows = make_taps(along_y(sampling), height);
  const std::int64_t stride = pixels.box.width * kChannels;
  std::vector<float> row(static_cast<std::size_t>(stride + 1));
  const auto sum_rows = kernels::has_avx2() ? sum_rows_avx2 : sum_rows_portable;
  for (std::int64_t y = 0; y < height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    sum_rows(pixels.rgb.data() + (rows.first[at] - pixels.box.y) * stride, stride,
             rows.weight.data() + y * rows.most, rows.count[at], stride, row.data());
    sum_columns(row.data(), pixels.box.x, columns, options, out + y * width);
  }
}

}  // namespace trireme::vision
