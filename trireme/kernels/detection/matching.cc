#include "trireme/kernels/detection/matching.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::kernels {
namespace {

/// For each anchor the ground-truth box that it overlaps with most, and how much.
struct Best {
  std::vector<std::int64_t> truth;
  std::vector<float> overlap;
};

void check(std::span<const float> overlaps, std::int64_t num_truth, std::size_t num_anchors) {
  if (num_truth < 0 || overlaps.size() != static_cast<std::size_t>(num_truth) * num_anchors) {
    throw Error(ErrorKind::kInvalidArgument, "expected overlaps of " + std::to_string(num_truth) +
                                                 " x " + std::to_string(num_anchors) + ", got " +
                                                 std::to_string(overlaps.size()));
  }
  const auto nan = std::ranges::find_if(overlaps, [](float x) { return std::isnan(x); });
  if (nan == overlaps.end()) return;
  const auto place = static_cast<std::size_t>(nan - overlaps.begin());
  throw Error(ErrorKind::kInvalidArgument,
              "the overlap of box " + std::to_string(place / num_anchors) + " with anchor " +
                  std::to_string(place % num_anchors) + " is NaN");
}

Best best_of_anchors(std::span<const float> overlaps, std::int64_t num_truth,
                     std::int64_t num_anchors) {
  Best best{std::vector<std::int64_t>(num_anchors, 0), std::vector<float>(num_anchors, -1)};
  for (std::int64_t t = 0; t < num_truth; ++t) {
    const float* row = overlaps.data() + t * num_anchors;
    for (std::int64_t a = 0; a < num_anchors; ++a) {
      if (row[a] <= best.overlap[a]) continue;
      best.overlap[a] = row[a];
      best.truth[a] = t;
    }
  }
  return best;
}

}  // namespace

void internal::check(const MatchOptions& options) {
  if (options.low <= options.high) return;
  throw Error(ErrorKind::kInvalidArgument, "expected low <= high, got " +
                                               std::to_string(options.low) + " and " +
                                               std::to_string(options.high));
}

void match_anchors(const MatchOptions& options, std::span<const float> overlaps,
                   std::int64_t num_truth, std::span<std::int64_t> matches) {
  internal::check(options);
  check(overlaps, num_truth, matches.size());
  const std::int64_t num_anchors = std::ssize(matches);
  const Best best = best_of_anchors(overlaps, num_truth, num_anchors);
  for (std::int64_t a = 0; a < num_anchors; ++a) {
    matches[a] = best.overlap[a] >= options.high ? best.truth[a]
                 : best.overlap[a] < options.low ? kBackground
                                                 : kBetween;
  }
  if (!options.keeps_best) return;
  for (std::int64_t t = 0; t < num_truth; ++t) {
    const std::span row = overlaps.subspan(t * num_anchors, num_anchors);
    const float most = row.empty() ? 0 : std::ranges::max(row);
    for (std::int64_t a = 0; most > 0 && a < num_anchors; ++a) {
      if (row[a] == most) matches[a] = best.truth[a];
    }
  }
}

void match_ssd(float threshold, std::span<const float> overlaps, std::int64_t num_truth,
               std::span<std::int64_t> matches) {
  check(overlaps, num_truth, matches.size());
  const std::int64_t num_anchors = std::ssize(matches);
  const Best best = best_of_anchors(overlaps, num_truth, num_anchors);
  for (std::int64_t a = 0; a < num_anchors; ++a) {
    matches[a] = best.overlap[a] > threshold ? best.truth[a] : kBackground;
  }
  for (std::int64_t t = 0; num_anchors > 0 && t < num_truth; ++t) {
    const std::span row = overlaps.subspan(t * num_anchors, num_anchors);
    matches[std::ranges::max_element(row) - row.begin()] = t;
  }
}

}  // namespace trireme::kernels
