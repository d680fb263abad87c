#include "packs/volume/kernels/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trireme/error.h"

namespace trireme::volume {
namespace {

/// Where a place of the result lies between two voxels of an axis.
struct Between {
  std::int64_t low = 0, high = 0;
  float share = 0;  ///< Of `high`.
};

std::vector<Between> places_between(std::int64_t from, std::int64_t to) {
  std::vector<Between> places(static_cast<std::size_t>(to));
  const double step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = static_cast<double>(i) * step;
    const std::int64_t low = std::min(static_cast<std::int64_t>(at), from - 1);
    places[static_cast<std::size_t>(i)] = {
        .low = low,
        .high = std::min(low + 1, from - 1),
        .share = static_cast<float>(at - static_cast<double>(low))};
  }
  return places;
}

float mixed(float low, float high, float share) { return low * (1 - share) + high * share; }

std::vector<std::int64_t> nearest_places(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) places[static_cast<std::size_t>(i)] = i * from / to;
  return places;
}

}  // namespace

bool is_same_spacing(const Spacing& a, const Spacing& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= 1e-6 * y; });
}

VolumeShape resampled_shape(const VolumeShape& shape, const Spacing& from, const Spacing& to) {
  check_shape("resampling", shape);
  Voxel sides = shape.sides();
  for (int axis = 0; axis < 3; ++axis) {
    if (!(from[axis] > 0 && to[axis] > 0 && std::isfinite(from[axis] / to[axis]))) {
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("resampling: voxels of {} to such of {} along {}; expected lengths "
                              "above 0",
                              from[axis], to[axis], "zyx"[axis]));
    }
    // Files have lengths in f32: 100 voxels of 0.7F mm are 100 of 0.7, not 99.99.
    constexpr double kRounding = 1e-4;
    const double side = static_cast<double>(sides[axis]) * (from[axis] / to[axis]) + kRounding;
    sides[axis] = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(side, 0x1p49)));
  }
  const VolumeShape result = {sides[0], sides[1], sides[2]};
  check_shape("resampling: the result", result);
  return result;
}

void resample_linear(const VolumeShape& from, const float* values, const VolumeShape& to,
                     float* resampled) {
  const auto zs = places_between(from.depth, to.depth), ys = places_between(from.height, to.height),
             xs = places_between(from.width, to.width);
  const auto row_of = [&](std::int64_t z, std::int64_t y) {
    return values + (z * from.height + y) * from.width;
  };
  std::vector<float> row(static_cast<std::size_t>(from.width));
  for (const Between& z : zs) {
    for (const Between& y : ys) {
      const float *a = row_of(z.low, y.low), *b = row_of(z.low, y.high);
      const float *c = row_of(z.high, y.low), *d = row_of(z.high, y.high);
      for (std::size_t x = 0; x < row.size(); ++x) {
        row[x] = mixed(mixed(a[x], b[x], y.share), mixed(c[x], d[x], y.share), z.share);
      }
      for (const Between& x : xs) {
        *resampled++ = mixed(row[static_cast<std::size_t>(x.low)],
                             row[static_cast<std::size_t>(x.high)], x.share);
      }
    }
  }
}

void resample_nearest(const VolumeShape& from, const std::uint8_t* labels, const VolumeShape& to,
                      std::uint8_t* resampled) {
  const auto zs = nearest_places(from.depth, to.depth), ys = nearest_places(from.height, to.height),
             xs = nearest_places(from.width, to.width);
  for (const std::int64_t z : zs) {
    for (const std::int64_t y : ys) {
      const std::uint8_t* row = labels + (z * from.height + y) * from.width;
      for (const std::int64_t x : xs) *resampled++ = row[x];
    }
  }
}

}  // namespace trireme::volume
