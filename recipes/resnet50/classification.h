#pragma once

#include <memory>

#include "packs/vision/data/image_source.h"
#include "packs/vision/models/resnet.h"
#include "trireme/model.h"

namespace trireme::recipes::resnet50 {

struct ClassificationData {
  std::shared_ptr<const vision::ImageSource> training;
  std::shared_ptr<const vision::ImageSource>
      evaluation;  ///< With the classes of `training`; may be null.
};

/// Classification of images: the mean cross-entropy, with label smoothing in training alone; `top1`, the part of
/// the images whose class has the largest logit, and of more than five classes `top5`, one of the five
/// largest.
///
/// smoothing   the part of a label that all classes share, 0 to below 1; else kInvalidArgument.
/// Errors      those of vision::ResNet.
/// Source      label smoothing: Szegedy et al., "Rethinking the Inception architecture for computer
///             vision", CVPR 2016, section 7.
Workload make_classification(const vision::ResNetConfig& config, const ClassificationData& data,
                             double smoothing);

}  // namespace trireme::recipes::resnet50
