#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs/vision/data/decoded_images.h"
#include "packs/vision/data/image_views.h"
#include "packs/vision/data/labelled_images.h"
#include "trireme/data.h"

namespace trireme::vision {

/// What a sample is. All of it changes results.
struct ImageOptions {
  std::int64_t size = 224;  ///< Sides of a sample, in pixels.
  /// Training: a random crop, resized, perhaps flipped; other ones on each visit. None: evaluation, the
  /// middle of the image once its shorter side has been resized to `shorter`.
  std::optional<RandomCropOptions> random;
  std::int64_t shorter = 256;
  /// Of red, green and blue, as parts of the largest level: values are (level / 255 - mean) / deviation.
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> deviation = {0.229, 0.224, 0.225};
  /// As levels 0 to 255, rounded, a byte each; mean and deviation are not used.
  bool has_bytes = false;
  std::uint64_t seed = 0;  ///< Of all that chance decides.
};

/// Images and their classes as samples of one size: decoded, cropped, resized (resize.h), normalised.
///
/// Fields   `image` f32, or u8 of bytes, [3, size, size]; `label` i64 [].
/// Errors   of read: kCorruptData and kIo, naming the file or shard and the record.
/// Order    crop and flip are functions of (seed, sample, visit): not of ranks, threads or order.
/// Threads  immutable.
class ImageSource : public data::Source {
 public:
  /// decoded   of these images alone; sources of the same may share it. None: each visit decodes.
  /// Errors    kInvalidArgument, naming it, for an option out of range.
  ImageSource(LabelledImages images, const ImageOptions& options,
              std::shared_ptr<DecodedImages> decoded = nullptr);

  std::int64_t num_samples() const override { return std::ssize(images_.labels); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  std::string identity() const override;

  const LabelledImages& images() const { return images_; }

 private:
  Sampling sampling_of(data::Sample sample, ImageSize image) const;
  bool is_flipped(data::Sample sample) const;
  void read_image(data::Sample sample, float* out) const;

  LabelledImages images_;
  ImageOptions options_;
  std::shared_ptr<DecodedImages> decoded_;
  LevelScale scale_;
  std::vector<data::Field> fields_;
};

}  // namespace trireme::vision
