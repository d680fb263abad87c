#pragma once

#include <cstdint>

#include "packs/vision/data/resize.h"

namespace trireme::vision {

/// A crop of random place, size and aspect for training. All of it changes results.
struct RandomCropOptions {
  double min_area = 0.08;  ///< Part of the image.
  double max_area = 1;
  double min_aspect = 3.0 / 4;  ///< Width by height.
  double max_aspect = 4.0 / 3;
  double flip_probability = 0.5;  ///< Of left and right changing places.
};

/// kInvalidArgument, naming the option, where one is out of range.
void check(const RandomCropOptions& options);

/// Draws a crop: an area uniformly, an aspect uniformly by its logarithm, then a place uniformly; up to ten
/// times, until the crop is within the image. Else the largest one in the middle whose aspect is allowed.
///
/// stream   of all draws (base/random.h); the same one gives the same crop.
/// Source   Szegedy et al., "Going deeper with convolutions", CVPR 2015, section 6; the rounding and the
///          ten tries are torchvision's RandomResizedCrop.
Sampling random_crop(ImageSize image, const RandomCropOptions& options, std::uint64_t stream);

/// Whether the image of this stream is flipped.
bool random_flip(double probability, std::uint64_t stream);

/// The square in the middle of the image, as it is once its shorter side has been resized to `shorter`: torchvision's
/// Resize(shorter), then CenterCrop(size).
///
/// size   at most `shorter`.
Sampling center_crop(ImageSize image, std::int64_t shorter, std::int64_t size);

}  // namespace trireme::vision
