#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/spread.h"

namespace trireme::vision {

/// Which ground-truth box each anchor stands for.
inline constexpr std::int64_t kBackground = -1;
inline constexpr std::int64_t kBetween = -2;  ///< Too much overlap for background, too little else.

struct MatchOptions {
  float high = 0.5F;  ///< Anchors that overlap at least so much match.
  float low = 0.5F;   ///< Below it they are background; in between kBetween.

  /// Each ground-truth box also gets the anchors that overlap with it most, however little (but not
  /// 0): all that tie for most, as in RPN.
  bool keeps_best = true;
};

/// An anchor takes the ground-truth box that it overlaps with most; the first of equals. Where
/// `keeps_best` gives an anchor back, it takes that box of its own, as torchvision's Matcher.
///
/// overlaps   [num_truth, num_anchors].
/// matches    [num_anchors], written: a ground-truth index, kBackground or kBetween.
/// Errors     kInvalidArgument where sizes do not match, low > high, or an overlap is NaN.
/// Cost       reads the overlaps once, three times where `keeps_best`; 12 bytes for each anchor.
///            Threads share the anchors where there are many; they change nothing.
void match_anchors(const MatchOptions& options, std::span<const float> overlaps,
                   std::int64_t num_truth, std::span<std::int64_t> matches,
                   const kernels::Spread& spread = kernels::on_caller);

/// As SSD matches: an anchor takes the box it overlaps with most where that exceeds `threshold`;
/// then each box, in order, takes the anchor that overlaps with it most for itself alone.
///
/// Errors     kInvalidArgument where sizes do not match, or an overlap is NaN.
/// Cost       reads the overlaps twice; 12 bytes for each anchor. Threads as above.
void match_ssd(float threshold, std::span<const float> overlaps, std::int64_t num_truth,
               std::span<std::int64_t> matches, const kernels::Spread& spread = kernels::on_caller);

namespace internal {

void check(const MatchOptions& options);

}  // namespace internal

}  // namespace trireme::vision
