#pragma once

#include <cstdint>
#include <vector>

#include "packs/vision/data/boxed_images.h"
#include "packs/vision/models/ssd.h"

namespace trireme::vision {

struct SsdDetectionOptions {
  double least_score = 0.05;  ///< Of a class that a default box may be taken for.
  double overlap = 0.5;       ///< Boxes of one class that overlap by more are one object.
  std::int64_t most = 200;    ///< Of an image.
};

/// An object that a model finds.
struct Detection {
  LabelledBox box;  ///< As parts of the image's sides, within 0 to 1.
  double score = 0;
};

/// What an SSD finds on each image: classes whose probability is above the least, their boxes decoded, those of a class
/// thinned out by non-maximum suppression; in order of falling scores.
///
/// output          of a batch, on the processor.
/// default_boxes   [A, 4] of the model.
std::vector<std::vector<Detection>> ssd_detections(const SsdOutput& output,
                                                   const torch::Tensor& default_boxes,
                                                   const SsdDetectionOptions& options = {});

}  // namespace trireme::vision
