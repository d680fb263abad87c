#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/vision/kernels/boxes.h"
#include "trireme/kernels/spread.h"

namespace trireme::vision {

/// How SSD writes boxes: variances 0.1 of centres, 0.2 of sides.
inline constexpr BoxCoding kSsdCoding = {.weights = {10, 10, 5, 5}};

/// What is on one image, and the anchors. Boxes are those in front of the first label 0.
struct SsdTruth {
  const float* boxes = nullptr;          ///< [M, 4] x1, y1, x2, y2.
  std::span<const std::int64_t> labels;  ///< [M], from 1 on.
  std::span<const float> anchors;        ///< [A, 4], in the boxes' unit.

  std::int64_t num_anchors() const { return std::ssize(anchors) / 4; }
  const float* box(std::int64_t index) const { return boxes + 4 * index; }
  const float* anchor(std::int64_t index) const { return anchors.data() + 4 * index; }
};

/// The box that each anchor takes, as match_ssd says.
///
/// Returns   [A] a box's index, or kBackground (kernels/matching.h).
/// Errors    kInvalidArgument for a box or anchor whose coordinates or area are not finite.
/// Cost      4 bytes for each pair of a box and an anchor.
std::vector<std::int64_t> ssd_matches(const SsdTruth& truth, float threshold);

/// Calls work(b) for each image of a batch; what it throws says which image it was of.
void for_each_image(std::int64_t num_images, const kernels::Spread& spread,
                    const kernels::Piece& work);

}  // namespace trireme::vision
