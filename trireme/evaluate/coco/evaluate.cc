#include "trireme/evaluate/coco/evaluate.h"

#include <utility>

#include "trireme/base/error.h"
#include "trireme/evaluate/coco/slots.h"

namespace trireme::evaluate {
namespace {

void check(const CocoGroundTruth& truth, const CocoDetections& detections,
           const CocoOptions& options) {
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

}  // namespace trireme::evaluate
