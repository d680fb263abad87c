#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/ground_truth.h"
#include "packs/vision/coco/slots.h"

namespace trireme::vision::internal {

/// How much detections overlap the annotations of their image and category. Keeps its memory for
/// the next pair.
class Overlaps {
 public:
  Overlaps(const CocoGroundTruth& truth, const CocoDetections& detections, CocoKind kind)
      : truth_(truth), detections_(detections), kind_(kind) {}

  /// found        detections.
  /// begin, end   annotations.
  void compute(std::span<const Found> found, std::int64_t begin, std::int64_t end);

  /// Of detection found[d] and annotation begin + g. Of masks only what reaches the lowest
  /// threshold is exact; what cannot may be 0.
  double at(std::int64_t d, std::int64_t g) const { return ious_[g * stride_ + d]; }

 private:
  void compare_boxes(std::span<const Found> found, std::int64_t begin, std::int64_t end);
  void compare_masks(std::span<const Found> found, std::int64_t begin, std::int64_t end);

  const CocoGroundTruth& truth_;
  const CocoDetections& detections_;
  const CocoKind kind_;
  std::int64_t stride_ = 0;
  std::vector<double> ious_;   // [annotation][stride]
  std::vector<double> sides_;  // of the detections: left, top, right, bottom, area; [5][stride]
};

}  // namespace trireme::vision::internal
