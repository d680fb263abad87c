#include "packs/vision/data/image_views.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "packs/vision/data/uniform.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using internal::Uniform;

constexpr int kTries = 10;

Sampling crop_of(const PixelBox& box) {
  return {.x = static_cast<double>(box.x),
          .y = static_cast<double>(box.y),
          .width = static_cast<double>(box.width),
          .height = static_cast<double>(box.height),
          .bounds = box};
}

/// To the nearest, halves to even, as Python rounds.
std::int64_t rounded(double x) { return static_cast<std::int64_t>(std::nearbyint(x)); }

PixelBox largest_in_the_middle(ImageSize image, const RandomCropOptions& options) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  PixelBox box{.width = image.width, .height = image.height};
  if (width / height < options.min_aspect) {
    box.height = std::clamp<std::int64_t>(rounded(width / options.min_aspect), 1, image.height);
  } else if (width / height > options.max_aspect) {
    box.width = std::clamp<std::int64_t>(rounded(height * options.max_aspect), 1, image.width);
  }
  box.x = (image.width - box.width) / 2;
  box.y = (image.height - box.height) / 2;
  return box;
}

}  // namespace

void check(const RandomCropOptions& options) {
  const auto refuse = [](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, "random crops: " + problem);
  };
  const auto& [min_area, max_area, min_aspect, max_aspect, flip] = options;
  if (!(min_area > 0 && min_area <= max_area && max_area <= 1)) {
    refuse("the area is a part of the image, above 0, the least one first, up to 1; got " +
           std::to_string(min_area) + " to " + std::to_string(max_area));
  }
  if (!(min_aspect > 0 && min_aspect <= max_aspect && max_aspect <= 1e6)) {
    refuse("the aspect is above 0, the least one first; got " + std::to_string(min_aspect) +
           " to " + std::to_string(max_aspect));
  }
  if (!(flip >= 0 && flip <= 1)) {
    refuse("the probability of a flip is from 0 to 1, got " + std::to_string(flip));
  }
}

Sampling random_crop(ImageSize image, const RandomCropOptions& options, std::uint64_t stream) {
  Uniform uniform(stream);
  const auto area = static_cast<double>(image.width) * static_cast<double>(image.height);
  for (int i = 0; i < kTries; ++i) {
    const double part = area * uniform.between(options.min_area, options.max_area);
    const double aspect =
        std::exp(uniform.between(std::log(options.min_aspect), std::log(options.max_aspect)));
    PixelBox box{.width = rounded(std::sqrt(part * aspect)),
                 .height = rounded(std::sqrt(part / aspect))};
    const bool fits =
        box.width >= 1 && box.height >= 1 && box.width <= image.width && box.height <= image.height;
    if (!fits) continue;
    box.y = uniform.below(image.height - box.height + 1);
    box.x = uniform.below(image.width - box.width + 1);
    return crop_of(box);
  }
  return crop_of(largest_in_the_middle(image, options));
}

bool random_flip(double probability, std::uint64_t stream) {
  return Uniform(stream).between(0, 1) < probability;
}

Sampling center_crop(ImageSize image, std::int64_t shorter, std::int64_t size) {
  // The longer side is rounded down, as torchvision does.
  const bool is_wide = image.width > image.height;
  const std::int64_t least = std::min(image.width, image.height);
  const std::int64_t longer = shorter * std::max(image.width, image.height) / least;
  const ImageSize resized{.height = is_wide ? shorter : longer,
                          .width = is_wide ? longer : shorter};
  const double scale_x = static_cast<double>(image.width) / static_cast<double>(resized.width);
  const double scale_y = static_cast<double>(image.height) / static_cast<double>(resized.height);
  const auto begin = [&](std::int64_t side) {
    return std::nearbyint(static_cast<double>(side - size) / 2);
  };
  return {.x = begin(resized.width) * scale_x,
          .y = begin(resized.height) * scale_y,
          .width = static_cast<double>(size) * scale_x,
          .height = static_cast<double>(size) * scale_y,
          .bounds = {.width = image.width, .height = image.height}};
}

}  // namespace trireme::vision
