#pragma once

#include <filesystem>
#include <memory>

#include "packs/vision/data/boxed_source.h"
#include "packs/vision/models/ssd.h"
#include "trireme/model.h"

namespace trireme::recipes::ssd {

struct DetectionData {
  std::shared_ptr<const vision::BoxedImageSource> training;
  std::shared_ptr<const vision::BoxedImageSource>
      evaluation;                 ///< Of the categories of `training`; may be null.
  std::filesystem::path results;  ///< File for what the last evaluation has found; none: empty.
};

/// Detection of objects: losses `boxes` and `classes` (vision::ssd_losses), each a mean over images, added up. Metrics of
/// the evaluation are COCO's average precisions and recalls; examples, what is found on its first image.
///
/// Errors   those of vision::SsdImpl; kInvalidArgument where the evaluation has other categories.
Workload make_detection(const vision::SsdConfig& config, const DetectionData& data);

}  // namespace trireme::recipes::ssd
