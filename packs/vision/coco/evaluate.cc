#include "packs/vision/coco/evaluate.h"

#include <limits>
#include <string>
#include <utility>

#include "packs/vision/coco/slots.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

/// Positions among other images or categories would lead out of memory.
void check_origin(const CocoGroundTruth& truth, const CocoDetections& detections) {
  const auto text = [](std::int64_t num_images, std::int64_t num_categories) {
    return std::to_string(num_images) + " images and " + std::to_string(num_categories) +
           " categories";
  };
  if (detections.num_images != truth.num_images() ||
      detections.num_categories != truth.num_categories()) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected detections read with these annotations, of " +
                    text(truth.num_images(), truth.num_categories()) + ", got some read with " +
                    text(detections.num_images, detections.num_categories));
  }
  if (detections.size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected fewer than 2^31 detections, got " + std::to_string(detections.size()));
  }
}

void check(const CocoGroundTruth& truth, const CocoDetections& detections,
           const CocoOptions& options) {
  check_origin(truth, detections);
  int before = 0;
  for (const int limit : options.max_dets) {
    if (limit <= before) {
      throw Error(ErrorKind::kInvalidArgument,
                  "expected limits of detections that ascend from 1, got " + std::to_string(limit) +
                      " after " + std::to_string(before));
    }
    before = limit;
  }
  if (options.kind == CocoKind::kMask && !(truth.has_masks && detections.has_masks)) {
    throw Error(ErrorKind::kInvalidArgument,
                "masks are to be evaluated, but annotations or detections were read for boxes");
  }
}

}  // namespace

CocoCurves evaluate_coco(const CocoGroundTruth& truth, const CocoDetections& detections,
                         const CocoOptions& options) {
  check(truth, detections, options);
  const internal::Verdicts verdicts = internal::match(truth, detections, options);
  const std::int64_t num_rows =
      truth.num_categories() * CocoCurves::kAreas * CocoCurves::kLimits * CocoCurves::kIous;
  CocoCurves curves{.category_ids = truth.category_ids,
                    .category_names = truth.category_names,
                    .max_dets = options.max_dets,
                    .precision = std::vector<double>(num_rows * CocoCurves::kRecalls, -1),
                    .recall = std::vector<double>(num_rows, -1)};
  options.spread(truth.num_categories(), [&](std::int64_t category) {
    internal::accumulate(truth, verdicts, category, curves);
  });
  return curves;
}

std::future<CocoCurves> evaluate_coco_async(std::shared_ptr<const CocoGroundTruth> truth,
                                            CocoDetections detections, CocoOptions options) {
  return std::async(
      std::launch::async,
      [truth = std::move(truth), detections = std::move(detections), options = std::move(options)] {
        return evaluate_coco(*truth, detections, options);
      });
}

}  // namespace trireme::vision
