#include "packs/vision/data/boxed_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "packs/vision/coco/rle.h"
#include "packs/vision/data/box_views.h"
#include "packs/vision/data/image_views.h"
#include "packs/vision/data/resize.h"
#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/data/check_read.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr double kLargestLevel = 255;

/// The transforms by number, each with a stream of its own: one more changes no other.
enum class BoxedTransform : std::uint8_t { kCrop, kFlip, kColors };

std::uint64_t stream_of(std::uint64_t seed, data::Sample sample, BoxedTransform transform) {
  return stream_seed(
      seed, {static_cast<std::uint64_t>(sample.index), static_cast<std::uint64_t>(sample.visit),
             static_cast<std::uint64_t>(transform)});
}

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "images with boxes: " + problem);
}

void check_options(const BoxedImages& images, const BoxedImageOptions& options) {
  constexpr std::int64_t kMostSize = 1 << 14;
  if (options.size < 1 || options.size > kMostSize) {
    refuse("the size is from 1 to 2^14 pixels, got " + std::to_string(options.size));
  }
  if (options.max_boxes < 1) {
    refuse("there is a place for a box at least, got " + std::to_string(options.max_boxes));
  }
  for (const BoxedImage& image : images.images) {
    if (std::ssize(image.boxes) <= options.max_boxes) continue;
    refuse("image " + std::to_string(image.id) + " of '" + images.annotations.string() + "' has " +
           std::to_string(image.boxes.size()) + " boxes; there are places for " +
           std::to_string(options.max_boxes));
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = options.mean[c], deviation = options.deviation[c];
    if (std::isfinite(mean) && std::isfinite(deviation) && deviation > 0) continue;
    refuse("means are numbers, deviations above 0; got " + std::to_string(mean) + " and " +
           std::to_string(deviation));
  }
  if (!options.random) return;
  const double flip = options.random->flip_probability;
  if (!(flip >= 0 && flip <= 1)) {
    refuse("the probability of a flip is from 0 to 1, got " + std::to_string(flip));
  }
  if (options.random->colors) check(*options.random->colors);
}

/// Boxes that are still some when rounded to f32, and the labels, behind them zeros.
void write_boxes(const std::vector<LabelledBox>& boxes,
                 std::span<const std::span<std::byte>> destinations) {
  std::vector<float> corners(destinations[1].size() / sizeof(float));
  std::vector<std::int64_t> labels(destinations[2].size() / sizeof(std::int64_t));
  std::size_t count = 0;
  for (const LabelledBox& box : boxes) {
    const float one[] = {static_cast<float>(box.x1), static_cast<float>(box.y1),
                         static_cast<float>(box.x2), static_cast<float>(box.y2)};
    if (one[0] >= one[2] || one[1] >= one[3]) continue;
    std::ranges::copy(one, corners.begin() + static_cast<std::ptrdiff_t>(4 * count));
    labels[count++] = box.label;
  }
  std::memcpy(destinations[1].data(), corners.data(), destinations[1].size());
  std::memcpy(destinations[2].data(), labels.data(), destinations[2].size());
}

}  // namespace

BoxedImageSource::BoxedImageSource(BoxedImages images, const BoxedImageOptions& options,
                                   std::shared_ptr<DecodedImages> decoded)
    : images_(std::move(images)),
      options_(options),
      decoded_(decoded ? std::move(decoded) : std::make_shared<DecodedImages>(KeepOptions{})) {
  check_options(images_, options);
  fields_ = {{"image", Dtype::kF32, {3, options.size, options.size}},
             {"boxes", Dtype::kF32, {options.max_boxes, 4}},
             {"labels", Dtype::kI64, {options.max_boxes}}};
}

PixelBox BoxedImageSource::crop_of(data::Sample sample) const {
  const BoxedImage& image = images_.images[static_cast<std::size_t>(sample.index)];
  if (!options_.random) return {.width = image.size.width, .height = image.size.height};
  return random_box_crop(image.size, image.boxes,
                         stream_of(options_.seed, sample, BoxedTransform::kCrop));
}

bool BoxedImageSource::is_flipped(data::Sample sample) const {
  return options_.random && random_flip(options_.random->flip_probability,
                                        stream_of(options_.seed, sample, BoxedTransform::kFlip));
}

void BoxedImageSource::read_image(data::Sample sample, const PixelBox& crop,
                                  std::span<float> out) const {
  const BoxedImage& image = images_.images[static_cast<std::size_t>(sample.index)];
  const auto read = [&] {
    data::ReadTimer timer("read");
    auto bytes = images_.read(image);
    timer.add_bytes(std::ssize(bytes));
    return bytes;
  };
  const auto name = [&] { return images_.place_of(image); };
  const ImageSize size{.height = options_.size, .width = options_.size};
  const Sampling sampling{.x = static_cast<double>(crop.x),
                          .y = static_cast<double>(crop.y),
                          .width = static_cast<double>(crop.width),
                          .height = static_cast<double>(crop.height),
                          .bounds = crop};
  const auto pixels = decoded_->get(sample, {read, name}, [&](ImageSize real) {
    if (real == image.size) return pixels_for(sampling, size);
    throw Error(ErrorKind::kCorruptData, "the image is " + to_text(real) +
                                             " (height x width), by its annotations " +
                                             to_text(image.size));
  });
  const data::ReadTimer timer("resize");
  resize(*pixels, sampling, {.size = size, .is_flipped = is_flipped(sample)}, out.data());
}

void BoxedImageSource::normalise(data::Sample sample, std::span<float> levels) const {
  const data::ReadTimer timer("colours");
  const std::size_t plane = levels.size() / 3;
  std::array<double, 3> mean = {};
  for (std::size_t c = 0; c < 3; ++c) {
    for (const float level : levels.subspan(c * plane, plane)) mean[c] += level;
    mean[c] /= static_cast<double>(plane);
  }
  ColorMap map;
  if (options_.random && options_.random->colors) {
    map = random_colors(*options_.random->colors, mean,
                        stream_of(options_.seed, sample, BoxedTransform::kColors));
  }
  for (std::size_t i = 0; i < plane; ++i) {
    const auto color = map({levels[i], levels[plane + i], levels[2 * plane + i]});
    for (std::size_t c = 0; c < 3; ++c) {
      const double part = std::clamp(color[c] / kLargestLevel, 0.0, 1.0);
      levels[c * plane + i] = static_cast<float>((part - options_.mean[c]) / options_.deviation[c]);
    }
  }
}

void BoxedImageSource::read(data::Sample sample,
                            std::span<const std::span<std::byte>> destinations) const {
  data::check_read("images with boxes", *this, sample, destinations);
  std::vector<float> values(destinations[0].size() / sizeof(float));
  const PixelBox crop = crop_of(sample);
  read_image(sample, crop, values);
  normalise(sample, values);
  std::memcpy(destinations[0].data(), values.data(), destinations[0].size());
  const BoxedImage& image = images_.images[static_cast<std::size_t>(sample.index)];
  write_boxes(boxes_in(crop, is_flipped(sample), image.boxes), destinations);
}

std::string BoxedImageSource::identity() const {
  Json json = {{"kind", "images with boxes"}, {"images", images_.identity()},
               {"size", options_.size},       {"max_boxes", options_.max_boxes},
               {"mean", options_.mean},       {"deviation", options_.deviation}};
  if (const auto& random = options_.random) {
    json["seed"] = options_.seed;
    json["flip"] = random->flip_probability;
    if (const auto& colors = random->colors) {
      json["colors"] = {colors->brightness, colors->contrast, colors->saturation, colors->hue};
    }
  }
  return sha256(compact_text(json));
}

}  // namespace trireme::vision
