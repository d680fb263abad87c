#pragma once

#include <cstdint>
#include <span>

#include "packs/vision/kernels/ssd_matching.h"
#include "trireme/kernels/spread.h"

namespace trireme::vision {

// B images with places for M boxes each, A anchors, K classes with background as class 0.

struct SsdLossOptions {
  double overlap = 0.5;        ///< Default boxes that overlap with a box by more take it.
  double negatives_ratio = 3;  ///< Of background to matched default boxes.
};

/// What an SSD says of a batch, and what is on its images.
struct SsdBatch {
  std::int64_t num_images = 0, num_anchors = 0, num_classes = 0, num_places = 0;
  const float* codes = nullptr;          ///< [B, A, 4], by kSsdCoding.
  const float* logits = nullptr;         ///< [B, A, K]
  const float* boxes = nullptr;          ///< [B, M, 4]
  const std::int64_t* labels = nullptr;  ///< [B, M]
  const float* anchors = nullptr;        ///< [A, 4]

  SsdTruth truth(std::int64_t image) const;
};

/// What the backward needs of the forward.
template <typename Float, typename Class, typename Flag>
struct SsdChoices {
  Class* classes = nullptr;   ///< [B, A], of the box that an anchor takes; 0 is background.
  Flag* is_chosen = nullptr;  ///< [B, A]: 1 for matched anchors and hard negatives.
  Float* log_sums = nullptr;  ///< [B, A], of the logits' exponentials.
  Float* slopes = nullptr;    ///< [B, A, 4], of smooth_l1 at code - target; 0 for background.
};
using MadeSsdChoices = SsdChoices<float, std::int64_t, std::uint8_t>;
using GivenSsdChoices = SsdChoices<const float, const std::int64_t, const std::uint8_t>;

/// Of each image, [B]; written.
struct SsdSumsOfImages {
  float* boxes = nullptr;
  float* classes = nullptr;
  std::int64_t* num_matched = nullptr;
};

/// Of each image, with the matches of match_ssd and the choice of mine_hard_negatives:
///
///     boxes   = sum over matched of smooth_l1(code - target), |d| < 1: d^2 / 2, else |d| - 1/2
///     classes = sum over matched and hard negatives of cross-entropy
///
/// Codes and targets of background are not looked at. Sums are in f64, in the order of the anchors; threads share images and
/// anchors, and change nothing.
///
/// made      `classes` and `slopes` come filled with 0; all else is written.
/// Errors    kInvalidArgument, naming the image: a box or anchor without area or not finite, a loss that is NaN, a ratio
///           below 0; naming the row, b * A + a, for a class that is none.
/// Cost      two passes over the logits (kernels/loss/cross_entropy.h); matching: 4 bytes for each pair of a box and an anchor
///           of an image.
/// Source    Liu et al., "SSD: single shot multibox detector", ECCV 2016, equations 1 to 3.
void ssd_loss(const SsdLossOptions& options, const SsdBatch& batch, const SsdSumsOfImages& sums,
              const MadeSsdChoices& made, const kernels::Spread& spread);

/// Gradients of the sums of each image.
struct SsdSumGradients {
  std::span<const float> boxes, classes;  ///< [B]
};

/// codes     [B, A, 4], written: g_boxes times the slope.
/// logits    [B, A, K], written: as cross_entropy_backward has it, 0 where an anchor is not chosen.
void ssd_loss_backward(const SsdBatch& batch, const GivenSsdChoices& choices,
                       const SsdSumGradients& gradients, float* codes, float* logits,
                       const kernels::Spread& spread);

}  // namespace trireme::vision
