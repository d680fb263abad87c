#include "packs/vision/data/image_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/data/check_read.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr double kMostLevel = 255;

/// The transforms by number, each with a stream of its own: one more changes no other.
enum class Transform : std::uint8_t { kCrop, kFlip };

std::uint64_t stream_of(const ImageOptions& options, data::Sample sample, Transform transform) {
  return stream_seed(options.seed, {static_cast<std::uint64_t>(sample.index),
                                    static_cast<std::uint64_t>(sample.visit),
                                    static_cast<std::uint64_t>(transform)});
}

[[noreturn]] void refuse_images(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "images: " + problem);
}

void check_images(const ImageOptions& options) {
  constexpr std::int64_t kMostSize = 1 << 14;
  if (options.size < 1 || options.size > kMostSize) {
    refuse_images("the size is from 1 to 2^14 pixels, got " + std::to_string(options.size));
  }
  if (options.random) {
    check(*options.random);
  } else if (options.shorter < options.size || options.shorter > kMostSize) {
    refuse_images("the shorter side is resized to " + std::to_string(options.shorter) +
                  "; expected the size, " + std::to_string(options.size) + ", or more, up to 2^14");
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const double deviation = options.deviation[c];
    if (std::isfinite(options.mean[c]) && std::isfinite(deviation) && deviation > 0) continue;
    refuse_images("means are numbers, deviations above 0; got " + std::to_string(options.mean[c]) +
                  " and " + std::to_string(deviation));
  }
}

LevelScale scale_of(const ImageOptions& options) {
  LevelScale scale;
  for (std::size_t c = 0; c < 3 && !options.has_bytes; ++c) {
    scale.factor[c] = static_cast<float>(1 / (kMostLevel * options.deviation[c]));
    scale.offset[c] = static_cast<float>(-options.mean[c] / options.deviation[c]);
  }
  return scale;
}

}  // namespace

ImageSource::ImageSource(LabelledImages images, const ImageOptions& options,
                         std::shared_ptr<DecodedImages> decoded)
    : images_(std::move(images)),
      options_(options),
      decoded_(decoded ? std::move(decoded) : std::make_shared<DecodedImages>(KeepOptions{})) {
  check_images(options);
  scale_ = scale_of(options);
  const Dtype dtype = options.has_bytes ? Dtype::kU8 : Dtype::kF32;
  fields_ = {{"image", dtype, {3, options.size, options.size}}, {"label", Dtype::kI64, {}}};
}

Sampling ImageSource::sampling_of(data::Sample sample, ImageSize image) const {
  if (!options_.random) return center_crop(image, options_.shorter, options_.size);
  return random_crop(image, *options_.random, stream_of(options_, sample, Transform::kCrop));
}

bool ImageSource::is_flipped(data::Sample sample) const {
  return options_.random && random_flip(options_.random->flip_probability,
                                        stream_of(options_, sample, Transform::kFlip));
}

void ImageSource::read_image(data::Sample sample, float* out) const {
  const auto& field = images_.image_fields[static_cast<std::size_t>(sample.index)];
  const auto read = [&] {
    data::ReadTimer timer("read");
    auto bytes = images_.records->read(sample.index, field);
    timer.add_bytes(std::ssize(bytes));
    return bytes;
  };
  const auto name = [&] { return images_.records->name(sample.index) + ", field '" + field + "'"; };
  const ImageSize size{.height = options_.size, .width = options_.size};
  Sampling sampling;
  const auto pixels = decoded_->get(sample, {read, name}, [&](ImageSize image) {
    sampling = sampling_of(sample, image);
    return pixels_for(sampling, size);
  });
  const data::ReadTimer timer("resize");
  resize(*pixels, sampling, {.size = size, .is_flipped = is_flipped(sample), .scale = scale_}, out);
}

void ImageSource::read(data::Sample sample,
                       std::span<const std::span<std::byte>> destinations) const {
  data::check_read("images", *this, sample, destinations);
  std::vector<float> values(static_cast<std::size_t>(3 * options_.size * options_.size));
  read_image(sample, values.data());
  if (options_.has_bytes) {
    const auto to_byte = [](float level) {
      return static_cast<std::byte>(std::lrint(std::clamp(level, 0.0F, 255.0F)));
    };
    std::ranges::transform(values, destinations[0].begin(), to_byte);
  } else {
    std::memcpy(destinations[0].data(), values.data(), destinations[0].size());
  }
  const std::int64_t label = images_.labels[static_cast<std::size_t>(sample.index)];
  std::memcpy(destinations[1].data(), &label, sizeof label);
}

std::string ImageSource::identity() const {
  Json json = {{"kind", "images"},
               {"records", images_.records->identity()},
               {"classes", images_.classes.size()},
               {"size", options_.size},
               {"mean", options_.mean},
               {"deviation", options_.deviation},
               {"has_bytes", options_.has_bytes}};
  if (const auto& random = options_.random) {
    json["random"] = {random->min_area, random->max_area, random->min_aspect, random->max_aspect,
                      random->flip_probability};
    json["seed"] = options_.seed;
  } else {
    json["shorter"] = options_.shorter;
  }
  return sha256(compact_text(json));
}

}  // namespace trireme::vision
