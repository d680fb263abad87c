#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packs/vision/coco/evaluate.h"

namespace trireme::vision::internal {

/// One bit for each range of area and threshold of overlap, bit area * 10 + threshold: what is
/// decided for one is decided for all forty by the same few operations on a word.
using Slots = std::uint64_t;

inline constexpr int kNumSlots = CocoCurves::kAreas * CocoCurves::kIous;
inline constexpr Slots kAllSlots = (Slots{1} << kNumSlots) - 1;

/// n + 1 even steps from first to last, rounded as numpy.linspace rounds them.
template <int Steps>
constexpr std::array<double, Steps + 1> even_steps(double first, double last) {
  std::array<double, Steps + 1> values{};
  const double step = (last - first) / Steps;
  for (int i = 0; i < Steps; ++i) values[i] = i * step + first;
  values[Steps] = last;
  return values;
}

inline constexpr auto kIouThresholds = even_steps<CocoCurves::kIous - 1>(.5, .95);
inline constexpr auto kRecallThresholds = even_steps<CocoCurves::kRecalls - 1>(0., 1.);

/// All slots of the ranges that an area is in. No branches: areas come in no order.
constexpr Slots slots_of_area(double area) {
  constexpr double kLows[] = {0, 0, 32 * 32, 96 * 96};
  constexpr double kHighs[] = {1e10, 32 * 32, 96 * 96, 1e10};
  constexpr Slots kOneRange = (Slots{1} << CocoCurves::kIous) - 1;
  Slots slots = 0;
  for (int a = 0; a < CocoCurves::kAreas; ++a) {
    const auto is_in = static_cast<Slots>(area >= kLows[a]) & static_cast<Slots>(area <= kHighs[a]);
    slots |= (is_in * kOneRange) << (a * CocoCurves::kIous);
  }
  return slots;
}

/// All slots whose threshold an overlap reaches.
constexpr Slots slots_of_iou(double iou) {
  constexpr Slots kFirstOfRanges =
      kAllSlots / ((Slots{1} << CocoCurves::kIous) - 1);  // one bit for each range
  Slots one_range = 0;
  for (int t = 0; t < CocoCurves::kIous; ++t) {
    one_range |= static_cast<Slots>(iou >= kIouThresholds[t]) << t;  // all below 1 - 1e-10
  }
  return one_range * kFirstOfRanges;
}

/// The slots in which an annotation counts; it is ignored in the others.
inline Slots slots_of_truth(const CocoGroundTruth& truth, std::int64_t i) {
  return truth.is_crowd[i] != 0 ? 0 : slots_of_area(truth.areas[i]);
}

/// What is asked of each detection again and again, together in memory.
struct Found {
  std::uint64_t key = 0;  ///< Ascending as scores descend.
  double area = 0;
  std::int32_t image = 0;
  std::int32_t index = 0;  ///< Its position among the detections as they came.
};

/// What matching says of each detection, in the order category, image, descending score.
struct Verdicts {
  std::vector<std::int64_t> category_begin;  ///< [categories + 1]
  std::vector<Found> found;
  std::vector<std::uint8_t> first_limit;  ///< The first of the limits it is within; 3: none.
  std::vector<Slots> hits;                ///< True positives.
  std::vector<Slots> misses;              ///< False positives.
};

Verdicts match(const CocoGroundTruth& truth, const CocoDetections& detections,
               const CocoOptions& options);

/// Fills the curves of one category. Nothing else of `curves` is touched.
void accumulate(const CocoGroundTruth& truth, const Verdicts& verdicts, std::int64_t category,
                CocoCurves& curves);

}  // namespace trireme::vision::internal
