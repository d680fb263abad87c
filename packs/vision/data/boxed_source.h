#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs/vision/data/boxed_images.h"
#include "packs/vision/data/color_jitter.h"
#include "packs/vision/data/decoded_images.h"
#include "trireme/data.h"

namespace trireme::vision {

/// Training: another crop, and perhaps left and right changed, on each visit.
struct BoxedViewOptions {
  double flip_probability = 0.5;
  std::optional<ColorJitterOptions> colors;
};

/// What a sample is. All of it changes results.
struct BoxedImageOptions {
  std::int64_t size = 300;  ///< Sides of a sample, in pixels; the image's aspect is lost.
  std::optional<BoxedViewOptions> random;  ///< None: evaluation, the whole image.
  std::int64_t max_boxes = 1;              ///< Places for boxes in a sample.
  /// Of red, green and blue, as parts of the largest level: values are (level / 255 - mean) / deviation.
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> deviation = {0.229, 0.224, 0.225};
  std::uint64_t seed = 0;  ///< Of all that chance decides.
};

/// Images with boxes as samples of one size: decoded, cropped (box_views.h), resized, normalised.
///
/// Fields   `image` f32 [3, size, size]; `boxes` f32 [max_boxes, 4], x1, y1, x2, y2 as parts of the sides;
///          `labels` i64 [max_boxes], from 1 on; places behind the last box are 0 in both.
/// Errors   of read: kCorruptData and kIo, naming the file, also where an image has another size than
///          its annotations say.
/// Order    crop, flip and colours are functions of (seed, sample, visit): not of ranks, threads or order.
/// Threads  immutable.
class BoxedImageSource : public data::Source {
 public:
  /// decoded   as of ImageSource.
  /// Errors    kInvalidArgument, naming it, for an option out of range or an image with more than `max_boxes`.
  BoxedImageSource(BoxedImages images, const BoxedImageOptions& options,
                   std::shared_ptr<DecodedImages> decoded = nullptr);

  std::int64_t num_samples() const override { return std::ssize(images_.images); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  std::string identity() const override;

  const BoxedImages& images() const { return images_; }

 private:
  PixelBox crop_of(data::Sample sample) const;
  bool is_flipped(data::Sample sample) const;
  void read_image(data::Sample sample, const PixelBox& crop, std::span<float> out) const;
  void normalise(data::Sample sample, std::span<float> levels) const;

  BoxedImages images_;
  BoxedImageOptions options_;
  std::shared_ptr<DecodedImages> decoded_;
  std::vector<data::Field> fields_;
};

}  // namespace trireme::vision
