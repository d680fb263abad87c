#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "packs/vision/kernels/matching.h"

namespace trireme::vision::reference {

/// Overlaps [num_truth, num_anchors], looked up one by one.
struct Overlaps {
  std::span<const float> all;
  std::int64_t num_truth, num_anchors;

  float at(std::int64_t truth, std::int64_t anchor) const {
    return all[truth * num_anchors + anchor];
  }

  /// The first of the largest of a column, and of a row; there is one.
  std::int64_t best_truth(std::int64_t anchor) const {
    std::int64_t best = 0;
    for (std::int64_t t = 1; t < num_truth; ++t) best = at(t, anchor) > at(best, anchor) ? t : best;
    return best;
  }
  std::int64_t best_anchor(std::int64_t truth) const {
    std::int64_t best = 0;
    for (std::int64_t a = 1; a < num_anchors; ++a) best = at(truth, a) > at(truth, best) ? a : best;
    return best;
  }
};

/// As kernels::match_anchors.
inline std::vector<std::int64_t> match_anchors(const MatchOptions& options,
                                               const Overlaps& overlaps) {
  std::vector<std::int64_t> matches(overlaps.num_anchors, kBackground);
  if (matches.empty() || overlaps.num_truth == 0) return matches;
  for (std::int64_t a = 0; a < overlaps.num_anchors; ++a) {
    const std::int64_t own = overlaps.best_truth(a);
    if (overlaps.at(own, a) >= options.low) matches[a] = kBetween;
    if (overlaps.at(own, a) >= options.high) matches[a] = own;
  }
  for (std::int64_t t = 0; t < overlaps.num_truth && options.keeps_best; ++t) {
    const float most = overlaps.at(t, overlaps.best_anchor(t));
    for (std::int64_t a = 0; a < overlaps.num_anchors && most > 0; ++a) {
      if (overlaps.at(t, a) == most) matches[a] = overlaps.best_truth(a);
    }
  }
  return matches;
}

/// As kernels::match_ssd.
inline std::vector<std::int64_t> match_ssd(float threshold, const Overlaps& overlaps) {
  std::vector<std::int64_t> matches(overlaps.num_anchors, kBackground);
  if (matches.empty() || overlaps.num_truth == 0) return matches;
  for (std::int64_t a = 0; a < overlaps.num_anchors; ++a) {
    const std::int64_t own = overlaps.best_truth(a);
    if (overlaps.at(own, a) > threshold) matches[a] = own;
  }
  for (std::int64_t t = 0; t < overlaps.num_truth; ++t) matches[overlaps.best_anchor(t)] = t;
  return matches;
}

}  // namespace trireme::vision::reference
