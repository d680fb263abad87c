#pragma once

// The passes of matching.h.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "packs/vision/cuda/matching.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::vision::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

constexpr std::int64_t kMatchLanes = 256;
constexpr float kBelowAll = -std::numeric_limits<float>::infinity();

/// Truth t's best anchor, the first of equals, to best[t * kMatchLanes]; -1 where all are NaN.
struct FindBestAnchor {
  DeviceOverlaps overlaps;
  std::int64_t* best;

  TRIREME_HOST_DEVICE void operator()(std::int64_t t, std::int64_t step, std::int64_t lane) const {
    const float* row = overlaps.values + t * overlaps.num_anchors;
    std::int64_t* places = best + t * kMatchLanes;
    if (step == 0) {
      places[lane] = -1;
      float most = kBelowAll;
      for (std::int64_t a = lane; a < overlaps.num_anchors; a += kMatchLanes) {
        if (!(row[a] > most)) continue;
        most = row[a];
        places[lane] = a;
      }
    } else if (lane == 0) {
      std::int64_t found = -1;
      for (std::int64_t i = 0; i < kMatchLanes; ++i) {
        const std::int64_t a = places[i];
        if (a < 0) continue;
        if (found < 0 || row[a] > row[found] || (row[a] == row[found] && a < found)) found = a;
      }
      places[0] = found;
    }
  }
};

/// An anchor's best truth, the first of equals.
struct BestTruth {
  std::int64_t truth = 0;
  float overlap = -1;

  TRIREME_HOST_DEVICE BestTruth(const DeviceOverlaps& overlaps, std::int64_t anchor) {
    for (std::int64_t t = 0; t < overlaps.num_truth; ++t) {
      const float own = overlaps.values[t * overlaps.num_anchors + anchor];
      if (!(own > overlap)) continue;
      overlap = own;
      truth = t;
    }
  }
};

struct MatchAnchor {
  MatchOptions options;
  DeviceOverlaps overlaps;
  const std::int64_t* best;
  std::int64_t* matches;

  TRIREME_HOST_DEVICE void operator()(std::int64_t a) const {
    const BestTruth own(overlaps, a);
    const bool is_matched = own.overlap >= options.high || (options.keeps_best && is_best(a));
    matches[a] = is_matched ? own.truth : own.overlap < options.low ? kBackground : kBetween;
  }

  /// Whether a truth overlaps with no anchor more than with this one.
  TRIREME_HOST_DEVICE bool is_best(std::int64_t a) const {
    for (std::int64_t t = 0; t < overlaps.num_truth; ++t) {
      const float* row = overlaps.values + t * overlaps.num_anchors;
      const std::int64_t place = best[t * kMatchLanes];
      if (place >= 0 && row[place] > 0 && row[a] == row[place]) return true;
    }
    return false;
  }
};

struct MatchSsd {
  float threshold;
  DeviceOverlaps overlaps;
  const std::int64_t* best;
  std::int64_t* matches;

  TRIREME_HOST_DEVICE void operator()(std::int64_t a) const {
    const BestTruth own(overlaps, a);
    std::int64_t match = own.overlap > threshold ? own.truth : kBackground;
    for (std::int64_t t = 0; t < overlaps.num_truth; ++t) {
      if (best[t * kMatchLanes] == a) match = t;
    }
    matches[a] = match;
  }
};

struct MatchSpace {
  MatchSpace(Cutter cutter, const DeviceOverlaps& overlaps)
      : best(cutter.take<std::int64_t>(overlaps.num_truth * kMatchLanes)), bytes(cutter.bytes()) {}

  std::int64_t* best;
  std::int64_t bytes;
};

template <typename Each>
void match_anchors_passes(const MatchOptions& options, const DeviceOverlaps& overlaps,
                          std::int64_t* matches, std::span<std::byte> workspace, const Each& each) {
  vision::internal::check(options);
  const MatchSpace space(Cutter(workspace), overlaps);
  check_workspace("match_anchors", workspace, space.bytes);
  if (options.keeps_best) {
    each.steps({overlaps.num_truth, 2, kMatchLanes}, FindBestAnchor{overlaps, space.best});
  }
  each(overlaps.num_anchors, MatchAnchor{options, overlaps, space.best, matches});
}

template <typename Each>
void match_ssd_passes(float threshold, const DeviceOverlaps& overlaps, std::int64_t* matches,
                      std::span<std::byte> workspace, const Each& each) {
  const MatchSpace space(Cutter(workspace), overlaps);
  check_workspace("match_ssd", workspace, space.bytes);
  each.steps({overlaps.num_truth, 2, kMatchLanes}, FindBestAnchor{overlaps, space.best});
  each(overlaps.num_anchors, MatchSsd{threshold, overlaps, space.best, matches});
}

}  // namespace trireme::vision::cuda::internal
