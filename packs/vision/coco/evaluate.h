#pragma once

#include <array>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/ground_truth.h"
#include "trireme/kernels/spread.h"

namespace trireme::vision {

struct CocoOptions {
  // Changes results.
  CocoKind kind = CocoKind::kBox;
  std::array<int, 3> max_dets = {1, 10, 100};  ///< Of an image and category; ascending, from 1.

  // Changes speed only.
  kernels::Spread spread = kernels::on_caller;
};

/// Ranges of area, in pixels, both ends included: all, small, medium, large.
enum class CocoArea : std::uint8_t { kAll, kSmall, kMedium, kLarge };

/// Precision and recall of each category K, area A, limit of detections M, threshold of overlap T
/// (0.50, 0.55, ..., 0.95) and, for precision, recall R (0, 0.01, ..., 1); -1 where the category
/// has no annotation of that area.
struct CocoCurves {
  static constexpr int kAreas = 4, kLimits = 3, kIous = 10, kRecalls = 101;

  std::vector<std::int64_t> category_ids;
  std::vector<std::string> category_names;
  std::array<int, kLimits> max_dets = {};
  std::vector<double> precision;  ///< [K][A][M][T][R]
  std::vector<double> recall;     ///< [K][A][M][T]

  std::int64_t num_categories() const { return std::ssize(category_ids); }

  /// Precision at all recalls, and recall at all thresholds of overlap.
  std::span<const double> precisions(std::int64_t k, CocoArea a, int m, int t) const {
    return std::span(precision).subspan((row(k, a, m) + t) * kRecalls, kRecalls);
  }
  std::span<const double> recalls(std::int64_t k, CocoArea a, int m) const {
    return std::span(recall).subspan(row(k, a, m), kIous);
  }

 private:
  static std::int64_t row(std::int64_t k, CocoArea a, int m) {
    return ((k * kAreas + static_cast<int>(a)) * kLimits + m) * kIous;
  }
};

/// What pycocotools computes by `evaluate` and `accumulate`, bit for bit:
///
///   * of an image and category the detections of highest score are kept, as many as the largest
///     limit; equal scores in the order they came;
///   * each in turn, at each threshold, takes the annotation that it overlaps most of those at or
///     above it that are free, the last of equals; crowds and annotations
///     outside the range of area count as ignored: they are taken only where no other can be, and
///     crowds stay free;
///   * what took an ignored annotation, or none and is itself outside the range of area, is left
///     out; the rest are true and false positives;
///   * over all images, by descending score (equal ones by image id): recall tp / annotations,
///     precision tp / (tp + fp + 2^-52), made to fall monotonously, at the first detection whose
///     recall reaches each R; 0 where none does.
///
/// Odd, and kept: an annotation whose id is 0 can be taken, but what takes it counts as a false
/// positive. Overlap of two boxes is 0 where either has no extent.
///
/// Errors   kInvalidArgument where limits do not ascend from 1, masks are asked for that were not
///          read, detections were read with another ground truth (of another number of images or
///          categories), or there are 2^31 or more.
/// Cost     n log n in detections; each pair of an image and category is matched once, for all
///          thresholds and areas together. Pieces: some thousand detections, then categories.
CocoCurves evaluate_coco(const CocoGroundTruth& truth, const CocoDetections& detections,
                         const CocoOptions& options = {});

/// The same in a thread of its own, while training goes on. The future's destructor waits.
///
/// truth   shared with the thread, since evaluations of several epochs use it.
std::future<CocoCurves> evaluate_coco_async(std::shared_ptr<const CocoGroundTruth> truth,
                                            CocoDetections detections, CocoOptions options = {});

}  // namespace trireme::vision
