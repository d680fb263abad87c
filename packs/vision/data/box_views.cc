#include "packs/vision/data/box_views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "packs/vision/data/uniform.h"

namespace trireme::vision {
namespace {

constexpr int kDraws = 50;
constexpr double kLeastSide = 0.3, kMostAspect = 2;
/// Least overlaps of the kinds of crops behind the whole image; the last asks for none.
constexpr std::array<double, 6> kOverlaps = {0.1, 0.3, 0.5, 0.7, 0.9, 0};

bool has_centre_of(const PixelBox& crop, const LabelledBox& box) {
  const double x = (box.x1 + box.x2) / 2 - static_cast<double>(crop.x);
  const double y = (box.y1 + box.y2) / 2 - static_cast<double>(crop.y);
  return x > 0 && x < static_cast<double>(crop.width) && y > 0 &&
         y < static_cast<double>(crop.height);
}

double overlap_of(const PixelBox& crop, const LabelledBox& box) {
  const auto x = static_cast<double>(crop.x), y = static_cast<double>(crop.y);
  const auto width = static_cast<double>(crop.width), height = static_cast<double>(crop.height);
  const double both_x = std::min(box.x2, x + width) - std::max(box.x1, x);
  const double both_y = std::min(box.y2, y + height) - std::max(box.y1, y);
  if (both_x <= 0 || both_y <= 0) return 0;
  const double both = both_x * both_y;
  return both / (width * height + (box.x2 - box.x1) * (box.y2 - box.y1) - both);
}

bool is_good(const PixelBox& crop, double least, const std::vector<LabelledBox>& boxes) {
  if (boxes.empty()) return true;
  const auto overlaps = [&](const LabelledBox& box) { return overlap_of(crop, box) >= least; };
  const auto is_inside = [&](const LabelledBox& box) { return has_centre_of(crop, box); };
  return std::ranges::any_of(boxes, overlaps) && std::ranges::any_of(boxes, is_inside);
}

std::int64_t part(double of, std::int64_t side) {
  return std::clamp<std::int64_t>(std::lrint(of * static_cast<double>(side)), 1, side);
}

}  // namespace

PixelBox random_box_crop(ImageSize image, const std::vector<LabelledBox>& boxes,
                         std::uint64_t stream) {
  internal::Uniform uniform(stream);
  const PixelBox whole{.width = image.width, .height = image.height};
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t kind = uniform.below(std::ssize(kOverlaps) + 1);
    if (kind == 0) return whole;
    const double width = uniform.between(kLeastSide, 1), height = uniform.between(kLeastSide, 1);
    if (width > kMostAspect * height || height > kMostAspect * width) continue;
    PixelBox crop{.width = part(width, image.width), .height = part(height, image.height)};
    crop.x = uniform.below(image.width - crop.width + 1);
    crop.y = uniform.below(image.height - crop.height + 1);
    if (is_good(crop, kOverlaps[static_cast<std::size_t>(kind - 1)], boxes)) return crop;
  }
  return whole;
}

std::vector<LabelledBox> boxes_in(const PixelBox& crop, bool is_flipped,
                                  const std::vector<LabelledBox>& boxes) {
  std::vector<LabelledBox> inside;
  const auto along = [](double at, std::int64_t begin, std::int64_t side) {
    return std::clamp((at - static_cast<double>(begin)) / static_cast<double>(side), 0.0, 1.0);
  };
  for (const LabelledBox& box : boxes) {
    if (!has_centre_of(crop, box)) continue;
    LabelledBox cut{.x1 = along(box.x1, crop.x, crop.width),
                    .y1 = along(box.y1, crop.y, crop.height),
                    .x2 = along(box.x2, crop.x, crop.width),
                    .y2 = along(box.y2, crop.y, crop.height),
                    .label = box.label};
    if (is_flipped) cut.x1 = 1 - std::exchange(cut.x2, 1 - cut.x1);
    inside.push_back(cut);
  }
  return inside;
}

}  // namespace trireme::vision
