#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/// COCO's twelve figures (`AP`, `AP50`, ..., `ARl`) of what FindObjects has found, by vision::evaluate_coco.
class AveragePrecision : public Metric {
 public:
  /// source    the images of the evaluation.
  /// results   file for all that is found, as COCO's evaluations read it (`trireme evaluate coco`, pycocotools); none: empty.
  AveragePrecision(std::shared_ptr<const vision::BoxedImageSource> source,
                   std::filesystem::path results);

  /// outputs   has `objects`.
  void add(const Batch& outputs) override;

  /// Errors   those of vision::read_ground_truth and write_file_atomically.
  std::vector<std::pair<std::string, double>> results() override;

 private:
  std::shared_ptr<const vision::BoxedImageSource> source_;
  std::filesystem::path results_;
  std::size_t num_images_ = 0;  ///< Seen so far.
  std::vector<double> rows_;    ///< As vision::make_detections takes them.
};

/// What a model finds on the first image of a source, for people.
std::string show_first(vision::Ssd& net, const vision::BoxedImageSource& source);

}  // namespace trireme::recipes::ssd
