#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/kernels/spread.h"

namespace trireme::vision {

/// Greedy non-maximum suppression: boxes in order of falling scores are kept unless their overlap
/// with one that is kept exceeds a threshold.
///
///     overlap(a, b) = inter / (area(a) + area(b) - inter)       each operation rounded to f32
///     inter         = max(0, min(x2) - max(x1)) * max(0, min(y2) - max(y1))
///
/// so that the result is torchvision's, box for box; 0 / 0 (two empty boxes) suppresses nothing.
struct NmsSettings {
  double threshold = 0.5;      ///< Overlaps above it suppress.
  std::int64_t max_kept = -1;  ///< Stops after so many; -1: all.
};

/// The kept boxes in order of falling scores; equal scores in order of their index.
///
/// boxes    [n, 4] x1, y1, x2, y2 in any unit.
/// scores   [n].
/// Errors   kInvalidArgument naming the box where a coordinate or score is NaN, or where a box ends
///          before it starts; where sizes do not match; for a threshold that is NaN.
/// Cost     kept x n / 2 overlaps at most, 16 at a time; 24 n bytes of scratch. Threads share the
///          boxes behind the kept ones of a window of 64, where there are many; they change nothing.
std::vector<std::int64_t> nms(std::span<const float> boxes, std::span<const float> scores,
                              const NmsSettings& options = {},
                              const kernels::Spread& spread = kernels::on_caller);

/// The same among boxes of one class each; classes do not suppress each other.
///
/// classes   [n], any numbers.
/// Returns   as `nms`: over all classes in order of falling scores.
/// Cost      the sum over classes, which threads share.
std::vector<std::int64_t> batched_nms(std::span<const float> boxes, std::span<const float> scores,
                                      std::span<const std::int64_t> classes,
                                      const NmsSettings& options = {},
                                      const kernels::Spread& spread = kernels::on_caller);

/// `batched_nms` into a fixed number of places, for graphs whose shapes may not change.
///
/// kept      [capacity] indices; those behind the valid ones are 0.
/// Returns   how many are valid.
std::int64_t fixed_nms(std::span<const float> boxes, std::span<const float> scores,
                       std::span<const std::int64_t> classes, double threshold,
                       std::span<std::int64_t> kept,
                       const kernels::Spread& spread = kernels::on_caller);

namespace internal {
/// Errors   kInvalidArgument where it is NaN.
void check_nms_threshold(double threshold);
}  // namespace internal

}  // namespace trireme::vision
