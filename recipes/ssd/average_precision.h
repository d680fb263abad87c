#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "packs/vision/data/boxed_source.h"
#include "packs/vision/models/ssd.h"
#include "trireme/model.h"

namespace trireme::recipes::ssd {

/// Objects that are found on images, as an output of forward: f64 [samples, 200, 6], of each x1, y1, x2, y2 as parts of the
/// image's sides, score, label; in order of falling scores, and then rows of 0.
///
/// A node of its own: vision::ssd_detections.
class FindObjects {
 public:
  explicit FindObjects(torch::Tensor default_boxes);
  torch::Tensor operator()(const vision::SsdOutput& output) const;

 private:
  Opaque call_;
};

/// metrics::average_precision of what FindObjects has found, the output `objects`, on the images of a source, in their order.
///
/// results   file for all that is found; none: empty.
std::unique_ptr<Metric> average_precision(std::shared_ptr<const vision::BoxedImageSource> source,
                                          std::filesystem::path results);

/// What a model finds on the first image of a source, for people.
std::string show_first(vision::Ssd& net, const vision::BoxedImageSource& source);

}  // namespace trireme::recipes::ssd
