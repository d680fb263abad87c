#include "packs/volume/data/volume_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/data/check_read.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::volume {
namespace {

/// The transforms by number, each with a stream of its own: one more changes no other.
enum class Transform : std::uint8_t { kCrop, kFlip, kBrightness, kNoise };

std::uint64_t stream_of(const VolumeOptions& options, data::Sample sample, Transform transform) {
  return stream_seed(options.seed, {static_cast<std::uint64_t>(sample.index),
                                    static_cast<std::uint64_t>(sample.visit),
                                    static_cast<std::uint64_t>(transform)});
}

[[noreturn]] void refuse_volumes(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "volumes: " + problem);
}

CropOptions crop_of(const VolumeOptions& options) {
  return {.patch = options.patch,
          .foreground_share = options.random ? options.random->foreground_share : 0,
          .num_objects = options.random ? options.random->num_objects : 1};
}

VolumeOptions checked(const VolumeOptions& options) {
  check_shape("volumes: the patch", options.patch, std::int64_t{1} << 31);
  const IntensityScale& scale = options.intensities;
  if (!(scale.low < scale.high && std::isfinite(scale.mean) && scale.deviation > 0)) {
    refuse_volumes("intensities are cut to [" + std::to_string(scale.low) + ", " +
                   std::to_string(scale.high) + "], less " + std::to_string(scale.mean) + ", by " +
                   std::to_string(scale.deviation) +
                   "; expected a range, a number and one above 0");
  }
  if (options.keep_bytes < 0) refuse_volumes("keep_bytes is below 0");
  if (options.spacing) resampled_shape({1, 1, 1}, *options.spacing, *options.spacing);  // checks it
  if (!options.random) return options;
  const double flip = options.random->flip_probability;
  if (!(flip >= 0 && flip <= 1)) {
    refuse_volumes("flip_probability is " + std::to_string(flip) + ", expected within [0, 1]");
  }
  check_intensities(options.random->intensities);
  choose_crop(crop_of(options), {options.patch, {}}, 0, 0);  // checks the rest
  return options;
}

/// How many voxels are put in front of a case's, and its shape with those on both sides.
struct PaddedCase {
  Voxel before = {};
  VolumeShape shape;
};

PaddedCase padded(const VolumeShape& shape, const VolumeShape& patch) {
  PaddedCase result;
  Voxel sides = shape.sides();
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t missing = std::max<std::int64_t>(0, patch.sides()[axis] - sides[axis]);
    result.before[axis] = missing / 2;
    sides[axis] += missing;
  }
  result.shape = {sides[0], sides[1], sides[2]};
  return result;
}

/// Where objects of a case are once it is padded.
Foreground moved(Foreground foreground, const PaddedCase& to) {
  foreground.shape = to.shape;
  for (Foreground::Class& label : foreground.classes) {
    for (Component& object : label.objects) {
      for (int axis = 0; axis < 3; ++axis) {
        object.box.begin[axis] += to.before[axis];
        object.box.end[axis] += to.before[axis];
      }
    }
  }
  return foreground;
}

}  // namespace

/// For each place of a patch along an axis the case's voxel that is taken there.
struct VolumeSource::Places {
  std::array<std::vector<std::int64_t>, 3> of_axis;
};

VolumeSource::VolumeSource(std::vector<VolumeFiles> files, const VolumeOptions& options)
    : options_(checked(options)),
      volumes_(std::move(files), {.spacing = options.spacing, .max_bytes = options.keep_bytes}) {
  const auto& [depth, height, width] = options.patch;
  fields_ = {{"image", Dtype::kF32, {1, depth, height, width}},
             {"label", Dtype::kU8, {depth, height, width}}};
  if (!options.random) return;
  foregrounds_ = std::make_unique<ForegroundCache>(num_samples(), [this](std::int64_t index) {
    const auto volume = volumes_.get(index);
    return moved(find_foreground(crop_of(options_), volume->shape, volume->labels.data()),
                 padded(volume->shape, options_.patch));
  });
}

VolumeSource::Places VolumeSource::places_of(data::Sample sample,
                                             const LabelledVolume& volume) const {
  const PaddedCase whole = padded(volume.shape, options_.patch);
  const Voxel patch = options_.patch.sides(), sides = volume.shape.sides();
  Voxel begin;
  for (int axis = 0; axis < 3; ++axis) begin[axis] = (whole.shape.sides()[axis] - patch[axis]) / 2;
  std::array<bool, 3> is_flipped = {};
  if (options_.random) {
    begin = choose_crop(crop_of(options_), foregrounds_->at(sample.index),
                        stream_of(options_, sample, Transform::kCrop), 0)
                .begin;
    const std::uint64_t flips = stream_of(options_, sample, Transform::kFlip);
    const auto words =
        philox({}, {static_cast<std::uint32_t>(flips), static_cast<std::uint32_t>(flips >> 32)});
    for (int axis = 0; axis < 3; ++axis)
      is_flipped[axis] = words[axis] < options_.random->flip_probability * 0x1p32;
  }
  Places places;
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t i = 0; i < patch[axis]; ++i) {
      const std::int64_t at = begin[axis] + (is_flipped[axis] ? patch[axis] - 1 - i : i);
      places.of_axis[axis].push_back(
          std::clamp<std::int64_t>(at - whole.before[axis], 0, sides[axis] - 1));
    }
  }
  return places;
}

RandomIntensities VolumeSource::intensities_of(data::Sample sample) const {
  const RandomIntensityOptions none = {.brightness_probability = 0, .noise_probability = 0};
  return {options_.random ? options_.random->intensities : none,
          stream_of(options_, sample, Transform::kBrightness),
          stream_of(options_, sample, Transform::kNoise)};
}

void VolumeSource::read(data::Sample sample,
                        std::span<const std::span<std::byte>> destinations) const {
  data::check_read("volumes", *this, sample, destinations);
  const auto volume = volumes_.get(sample.index);
  const Places places = places_of(sample, *volume);
  const data::ReadTimer timer("crop");
  const auto& [zs, ys, xs] = places.of_axis;
  const auto [low, high, mean, deviation] = options_.intensities;
  const RandomIntensities random = intensities_of(sample);
  std::int64_t place = 0;  // in the patch
  std::vector<float> row(xs.size());
  std::byte *image = destinations[0].data(), *label = destinations[1].data();
  for (const std::int64_t z : zs) {
    for (const std::int64_t y : ys) {
      const std::int64_t first = (z * volume->shape.height + y) * volume->shape.width;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const auto at = static_cast<std::size_t>(first + xs[i]);
        row[i] = (std::clamp(volume->values[at], low, high) - mean) / deviation;
        *label++ = static_cast<std::byte>(volume->labels[at]);
      }
      random.apply(place, row);
      place += std::ssize(row);
      std::memcpy(image, row.data(), row.size() * sizeof(float));
      image += row.size() * sizeof(float);
    }
  }
}

std::string VolumeSource::identity() const {
  Json cases = Json::array();
  for (const VolumeFiles& files : volumes_.files()) {
    std::error_code failure;
    const auto size_of = [&](const std::filesystem::path& path) {
      const auto size = std::filesystem::file_size(path, failure);
      if (!failure) return size;
      throw Error(ErrorKind::kIo, "cannot read '" + path.string() + "': " + failure.message());
    };
    cases.push_back({files.name, size_of(files.image), size_of(files.labels)});
  }
  const IntensityScale& scale = options_.intensities;
  Json json = {{"kind", "volumes"},
               {"cases", cases},
               {"patch", options_.patch.sides()},
               {"spacing", options_.spacing ? Json(*options_.spacing) : Json()},
               {"intensities", {scale.low, scale.high, scale.mean, scale.deviation}}};
  if (const auto& random = options_.random) {
    const RandomIntensityOptions& change = random->intensities;
    json["random"] = {random->foreground_share, random->num_objects, random->flip_probability};
    json["brightness"] = {change.brightness_probability, change.brightness_low,
                          change.brightness_high};
    json["noise"] = {change.noise_probability, change.noise_deviation};
    json["seed"] = options_.seed;
  }
  return sha256(compact_text(json));
}

}  // namespace trireme::volume
