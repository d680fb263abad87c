#include "packs/vision/kernels/matching.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

/// For each anchor the ground-truth box that it overlaps with most, and how much.
struct Best {
  std::vector<std::int32_t> truth;
  std::vector<float> overlap;
};

/// Anchors that a thread takes at a time, and overlaps that threads are made for: some 100 us.
constexpr std::int64_t kAnchorsOfPiece = 4096;
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 18;

/// Overlaps that are compared without a branch between them.
constexpr std::int64_t kBlock = 64;

/// Calls found(i), in order, for those of [begin, end) of `row` that equal `value`, of which there are few,
/// until it returns false.
template <typename Found>
void for_each_equal(std::span<const float> row, std::int64_t begin, std::int64_t end, float value,
                    const Found& found) {
  for (; begin < end; begin += kBlock) {
    const std::int64_t block_end = std::min(begin + kBlock, end);
    int any = 0;
    for (std::int64_t i = begin; i < block_end; ++i) any |= row[i] == value ? 1 : 0;
    if (any == 0) continue;
    for (std::int64_t i = begin; i < block_end; ++i) {
      if (row[i] == value && !found(i)) return;
    }
  }
}

/// The largest of a row, which is not empty and has no NaN.
float largest_of(std::span<const float> row) {
  std::array<float, kBlock> largest;
  largest.fill(row[0]);
  std::size_t i = 0;
  for (; i + kBlock <= row.size(); i += kBlock) {
    for (std::size_t lane = 0; lane < kBlock; ++lane) {
      largest[lane] = row[i + lane] > largest[lane] ? row[i + lane] : largest[lane];
    }
  }
  for (; i < row.size(); ++i) largest[0] = std::max(largest[0], row[i]);
  return *std::ranges::max_element(largest);
}

/// The overlaps of one call.
struct Overlaps {
  std::span<const float> all;
  std::int64_t num_truth, num_anchors;

  std::span<const float> row(std::int64_t truth) const {
    return all.subspan(truth * num_anchors, num_anchors);
  }

  /// Calls body(begin, end) for pieces of the anchors.
  template <typename Body>
  void for_each_piece(const kernels::Spread& spread, const Body& body) const {
    const std::int64_t num_pieces = (num_anchors + kAnchorsOfPiece - 1) / kAnchorsOfPiece;
    kernels::spread_or_caller(spread, std::ssize(all), kWorthThreads)(
        num_pieces, [&](std::int64_t piece) {
          body(piece * kAnchorsOfPiece, std::min((piece + 1) * kAnchorsOfPiece, num_anchors));
        });
  }
};

Overlaps checked(std::span<const float> overlaps, std::int64_t num_truth, std::size_t num_anchors) {
  if (num_truth < 0 || overlaps.size() != static_cast<std::size_t>(num_truth) * num_anchors) {
    throw Error(ErrorKind::kInvalidArgument, "expected overlaps of " + std::to_string(num_truth) +
                                                 " x " + std::to_string(num_anchors) + ", got " +
                                                 std::to_string(overlaps.size()));
  }
  if (num_truth > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected at most 2^31 - 1 ground-truth boxes, got " + std::to_string(num_truth));
  }
  return {overlaps, num_truth, static_cast<std::int64_t>(num_anchors)};
}

[[noreturn]] void refuse_nan(const Overlaps& overlaps) {
  const auto nan = std::ranges::find_if(overlaps.all, [](float x) { return std::isnan(x); });
  const std::int64_t place = nan - overlaps.all.begin();
  throw Error(ErrorKind::kInvalidArgument,
              "the overlap of box " + std::to_string(place / overlaps.num_anchors) +
                  " with anchor " + std::to_string(place % overlaps.num_anchors) + " is NaN");
}

/// Of `n` anchors: where the overlap with box t is more than the most so far, it is the new best.
/// Returns 1 where one is NaN.
int take_more(const float* row, std::int32_t t, float* __restrict__ most,
              std::int32_t* __restrict__ truth, std::int64_t n) {
  int any_nan = 0;
  for (std::int64_t a = 0; a < n; ++a) {
    const float x = row[a];
    const std::int32_t is_more = x > most[a] ? -1 : 0;  // a mask, so that nothing branches
    any_nan |= x != x ? 1 : 0;
    truth[a] = (t & is_more) | (truth[a] & ~is_more);
    most[a] = x > most[a] ? x : most[a];
  }
  return any_nan;
}

/// Throws where one is NaN.
Best best_of_anchors(const Overlaps& overlaps, const kernels::Spread& spread) {
  Best best{std::vector<std::int32_t>(overlaps.num_anchors, 0),
            std::vector<float>(overlaps.num_anchors, -1)};
  std::atomic<bool> has_nan = false;
  overlaps.for_each_piece(spread, [&](std::int64_t begin, std::int64_t end) {
    int any_nan = 0;
    for (std::int32_t t = 0; t < overlaps.num_truth; ++t) {
      any_nan |= take_more(overlaps.row(t).data() + begin, t, &best.overlap[begin],
                           &best.truth[begin], end - begin);
    }
    if (any_nan != 0) has_nan = true;
  });
  if (has_nan) refuse_nan(overlaps);
  return best;
}

/// The anchor that each ground-truth box overlaps with most, the first of equals; there are anchors.
std::vector<std::int64_t> best_of_truth(const Overlaps& overlaps, const kernels::Spread& spread) {
  std::vector<std::int64_t> best(overlaps.num_truth);
  const kernels::Spread& used =
      kernels::spread_or_caller(spread, std::ssize(overlaps.all), kWorthThreads);
  used(overlaps.num_truth, [&](std::int64_t t) {
    const std::span row = overlaps.row(t);
    for_each_equal(row, 0, overlaps.num_anchors, largest_of(row), [&](std::int64_t a) {
      best[t] = a;
      return false;
    });
  });
  return best;
}

}  // namespace

void internal::check(const MatchOptions& options) {
  if (options.low <= options.high) return;
  throw Error(ErrorKind::kInvalidArgument, "expected low <= high, got " +
                                               std::to_string(options.low) + " and " +
                                               std::to_string(options.high));
}

void match_anchors(const MatchOptions& options, std::span<const float> given,
                   std::int64_t num_truth, std::span<std::int64_t> matches,
                   const kernels::Spread& spread) {
  internal::check(options);
  const Overlaps overlaps = checked(given, num_truth, matches.size());
  const Best best = best_of_anchors(overlaps, spread);
  std::vector<std::int64_t> most;
  if (options.keeps_best && !matches.empty()) most = best_of_truth(overlaps, spread);
  overlaps.for_each_piece(spread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t a = begin; a < end; ++a) {
      matches[a] = best.overlap[a] >= options.high ? best.truth[a]
                   : best.overlap[a] < options.low ? kBackground
                                                   : kBetween;
    }
    for (std::int64_t t = 0; t < std::ssize(most); ++t) {
      const std::span row = overlaps.row(t);
      const float largest = row[most[t]];
      if (largest <= 0) continue;
      for_each_equal(row, begin, end, largest, [&](std::int64_t a) {
        matches[a] = best.truth[a];
        return true;
      });
    }
  });
}

void match_ssd(float threshold, std::span<const float> given, std::int64_t num_truth,
               std::span<std::int64_t> matches, const kernels::Spread& spread) {
  const Overlaps overlaps = checked(given, num_truth, matches.size());
  const Best best = best_of_anchors(overlaps, spread);
  for (std::size_t a = 0; a < matches.size(); ++a) {
    matches[a] = best.overlap[a] > threshold ? best.truth[a] : kBackground;
  }
  if (matches.empty()) return;
  const std::vector<std::int64_t> taken = best_of_truth(overlaps, spread);
  for (std::int64_t t = 0; t < num_truth; ++t) matches[taken[t]] = t;
}

}  // namespace trireme::vision
