#include "packs/vision/coco/paste.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kPadding = 1;

/// Pixels of the box along one axis, and where each is sampled from the padded mask.
struct Axis {
  std::int64_t begin = 0, end = 0;  ///< In the image.
  std::vector<std::int32_t> low;    ///< The source on the lower side; the other is `high`.
  std::vector<std::int32_t> high;
  std::vector<float> weight;  ///< Of `high`.
};

Axis make_axis(float low, float high, std::int64_t side, std::int64_t extent) {
  const std::int64_t padded = side + 2 * kPadding;
  const auto scale = static_cast<float>(static_cast<double>(padded) / static_cast<double>(side));
  const float half = (high - low) * 0.5F * scale;
  const float centre = (high + low) * 0.5F;
  const auto first = static_cast<std::int64_t>(centre - half);
  const auto last = static_cast<std::int64_t>(centre + half);
  const std::int64_t length = std::max<std::int64_t>(last - first + 1, 1);
  Axis axis{.begin = std::clamp<std::int64_t>(first, 0, extent),
            .end = std::clamp<std::int64_t>(last + 1, 0, extent)};
  const float step = static_cast<float>(padded) / static_cast<float>(length);
  for (std::int64_t i = axis.begin; i < axis.end; ++i) {
    const float source = std::max(step * (static_cast<float>(i - first) + 0.5F) - 0.5F, 0.0F);
    const std::int64_t below = std::min(static_cast<std::int64_t>(source), padded - 1);
    axis.low.push_back(static_cast<std::int32_t>(below));
    axis.high.push_back(static_cast<std::int32_t>(std::min(below + 1, padded - 1)));
    axis.weight.push_back(std::clamp(source - static_cast<float>(below), 0.0F, 1.0F));
  }
  return axis;
}

void check(const SoftMask& mask) {
  constexpr std::int64_t kMaxSide = 4096;
  if (mask.side < 1 || mask.side > kMaxSide || std::ssize(mask.values) != mask.side * mask.side) {
    throw Error(ErrorKind::kInvalidArgument, "expected a square mask of side 1 to 4096, got side " +
                                                 std::to_string(mask.side) + " and " +
                                                 std::to_string(mask.values.size()) + " values");
  }
  for (const float corner : {mask.left, mask.top, mask.right, mask.bottom}) {
    constexpr float kLargest = 1e8F;
    if (!(std::abs(corner) <= kLargest)) {
      throw Error(ErrorKind::kInvalidArgument,
                  "expected a box within 1e8, got " + std::to_string(corner));
    }
  }
}

/// The padded mask, column after column.
std::vector<float> padded_columns(const SoftMask& mask) {
  const std::int64_t padded = mask.side + 2 * kPadding;
  std::vector<float> columns(padded * padded);
  for (std::int64_t y = 0; y < mask.side; ++y) {
    for (std::int64_t x = 0; x < mask.side; ++x) {
      columns[(x + kPadding) * padded + y + kPadding] = mask.values[y * mask.side + x];
    }
  }
  return columns;
}

}  // namespace

Rle paste(ImageSize image, const SoftMask& mask, float threshold) {
  internal::check_size(image);
  check(mask);
  const Axis x = make_axis(mask.left, mask.right, mask.side, image.width);
  const Axis y = make_axis(mask.top, mask.bottom, mask.side, image.height);
  const std::int64_t padded = mask.side + 2 * kPadding;
  const std::vector<float> columns = padded_columns(mask);
  std::vector<float> column(padded);
  Rle rle{.size = image};
  for (std::int64_t i = 0; i < x.end - x.begin; ++i) {
    const float* left = columns.data() + x.low[i] * padded;
    const float* right = columns.data() + x.high[i] * padded;
    const float weight = x.weight[i];
    for (std::int64_t row = 0; row < padded; ++row) {
      column[row] = (1 - weight) * left[row] + weight * right[row];
    }
    const std::int64_t base = (x.begin + i) * image.height + y.begin;
    bool was_in = false;
    for (std::int64_t j = 0; j < y.end - y.begin; ++j) {
      const float value = (1 - y.weight[j]) * column[y.low[j]] + y.weight[j] * column[y.high[j]];
      const bool is_in = value > threshold;
      if (is_in != was_in) internal::toggle(rle.bounds, static_cast<std::uint32_t>(base + j));
      was_in = is_in;
    }
    if (was_in) {
      internal::toggle(rle.bounds, static_cast<std::uint32_t>(base + y.end - y.begin));
    }
  }
  return rle;
}

}  // namespace trireme::vision
