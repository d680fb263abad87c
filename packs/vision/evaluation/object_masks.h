#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "packs/vision/coco/rle.h"
#include "trireme/model.h"

namespace trireme::metrics {

/// The masks of an output, in one of the forms of `AveragePrecisionOptions::masks`: pixels of the image, soft masks of boxes,
/// or runs.
class ObjectMasks {
 public:
  /// labels   output [samples, objects] that says how many there are.
  /// Errors   kInvalidArgument for another shape or type.
  ObjectMasks(const Batch& outputs, const std::string& masks, const std::string& labels);

  /// Of pixels: the size that all have; else zeros.
  vision::ImageSize common_size() const;

  /// Of object i among those of all samples, in an image of that size.
  ///
  /// box      its own, of soft masks.
  /// Errors   kInvalidArgument where it does not fit the image.
  vision::Rle mask_of(std::int64_t i, const vision::Box& box, vision::ImageSize size) const;

 private:
  vision::Rle of_pixels(std::int64_t i, vision::ImageSize size) const;
  vision::Rle of_soft_mask(std::int64_t i, const vision::Box& box, vision::ImageSize size) const;
  vision::Rle of_runs(std::int64_t i, vision::ImageSize size) const;

  std::string name_;
  at::Tensor masks_;  ///< Dense: bool, f32 or i64.
  std::int64_t num_of_sample_;
};

}  // namespace trireme::metrics
