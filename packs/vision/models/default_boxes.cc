#include "packs/vision/models/default_boxes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kStride = 8;     // of the first level, in pixels
constexpr std::int64_t kMostUncut = 5;  // places a side, above which a level is halved
constexpr double kFirstScale = 0.07, kLeastScale = 0.15, kMostScale = 1.05;

std::vector<BoxLevel> sides_of(std::int64_t size) {
  std::vector<BoxLevel> levels;
  const auto whole = static_cast<double>(size);
  double step = static_cast<double>(kStride) / whole;
  for (std::int64_t side = (size + kStride - 1) / kStride;; step *= 2) {
    const bool is_halved = levels.empty() || levels.back().side > kMostUncut;
    levels.push_back({.side = side,
                      .is_halved = is_halved,
                      .step = is_halved ? step : 1 / static_cast<double>(side)});
    if (side > kMostUncut) {
      side = (side + 1) / 2;
    } else if (side > 2) {
      side -= 2;
    } else {
      return levels;
    }
  }
}

void add_boxes(BoxLevel& level, double scale, double next, const std::vector<double>& aspects) {
  const auto add = [&](double width, double height) {
    level.widths.push_back(std::min(width, 1.0));
    level.heights.push_back(std::min(height, 1.0));
  };
  add(scale, scale);
  add(std::sqrt(scale * next), std::sqrt(scale * next));
  for (const double aspect : aspects) {
    add(scale * std::sqrt(aspect), scale / std::sqrt(aspect));
    add(scale / std::sqrt(aspect), scale * std::sqrt(aspect));
  }
}

}  // namespace

std::vector<BoxLevel> box_levels(std::int64_t size) {
  constexpr std::int64_t kLeastSize = 32, kMostSize = 2048;
  if (size < kLeastSize || size > kMostSize) {
    throw Error(ErrorKind::kInvalidArgument,
                "SSD: images have 32 to 2048 pixels a side, got " + std::to_string(size));
  }
  std::vector<BoxLevel> levels = sides_of(size);
  const std::size_t count = levels.size();
  const auto scale = [&](std::size_t level) {
    if (level == 0) return kFirstScale;
    return kLeastScale + (kMostScale - kLeastScale) * static_cast<double>(level - 1) /
                             static_cast<double>(count - 1);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_plain = i == 0 || i + 2 >= count;
    add_boxes(levels[i], scale(i), scale(i + 1),
              is_plain ? std::vector<double>{2} : std::vector<double>{2, 3});
  }
  return levels;
}

std::vector<float> default_boxes(const std::vector<BoxLevel>& levels) {
  std::vector<float> boxes;
  for (const BoxLevel& level : levels) {
    const auto centre = [&](std::int64_t i) {
      return std::min((static_cast<double>(i) + 0.5) * level.step, 1.0);
    };
    for (std::int64_t place = 0; place < level.side * level.side; ++place) {
      const double x = centre(place % level.side), y = centre(place / level.side);
      for (std::size_t k = 0; k < level.widths.size(); ++k) {
        const double half_width = level.widths[k] / 2, half_height = level.heights[k] / 2;
        for (const double at : {x - half_width, y - half_height, x + half_width, y + half_height}) {
          boxes.push_back(static_cast<float>(at));
        }
      }
    }
  }
  return boxes;
}

}  // namespace trireme::vision
