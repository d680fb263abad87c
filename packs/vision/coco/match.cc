// Detections are sorted by category and image, then each pair of both is matched by itself.
//
// For one detection all forty slots (slots.h) are open at first. Annotations that it overlaps
// enough, most overlap first, take from the open slots those whose threshold is reached, in which
// they are still free, and, in the first round, in which they count; in the second round those in
// which they are ignored. That is the reference's search, one annotation after the other, for all
// thresholds and areas at once.

#include <algorithm>
#include <bit>
#include <numeric>

#include "packs/vision/coco/overlaps.h"
#include "packs/vision/coco/slots.h"

namespace trireme::vision::internal {
namespace {

/// Ascending as scores descend; 0 and -0 are equal.
std::uint64_t key_of(double score) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
  return (bits & kSign) != 0 ? bits : ~(bits | kSign);
}

/// Where each bucket begins, and the end.
std::vector<std::int64_t> begins(const std::vector<std::int32_t>& buckets,
                                 std::int64_t num_buckets) {
  std::vector<std::int64_t> begin(num_buckets + 1, 0);
  for (const std::int32_t bucket : buckets) ++begin[bucket + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  return begin;
}

/// Positions of detections by image, and as they came.
std::vector<std::int32_t> order_by_image(const CocoGroundTruth& truth,
                                         const CocoDetections& detections) {
  std::vector<std::int32_t> order(detections.size());
  std::vector<std::int64_t> next = begins(detections.images, truth.num_images());
  // As many as evaluate_coco allows.
  const auto n = static_cast<std::int32_t>(detections.size());
  for (std::int32_t i = 0; i < n; ++i) order[next[detections.images[i]]++] = i;
  return order;
}

/// All detections, by category and image and as they came; nothing is decided yet.
Verdicts sorted(const CocoGroundTruth& truth, const CocoDetections& detections) {
  const std::int64_t n = detections.size();
  constexpr std::uint8_t kNone = CocoCurves::kLimits;
  Verdicts verdicts{.category_begin = begins(detections.categories, truth.num_categories()),
                    .found = std::vector<Found>(n),
                    .first_limit = std::vector<std::uint8_t>(n, kNone),
                    .hits = std::vector<Slots>(n),
                    .misses = std::vector<Slots>(n)};
  std::vector<std::int64_t> next = verdicts.category_begin;
  for (const std::int32_t i : order_by_image(truth, detections)) {
    verdicts.found[next[detections.categories[i]]++] = {
        key_of(detections.scores[i]), detections.areas[i], detections.images[i], i};
  }
  return verdicts;
}

/// Matches pairs of an image and category, one after the other.
class Matcher {
 public:
  Matcher(const CocoGroundTruth& truth, const CocoDetections& detections,
          const CocoOptions& options, Verdicts& verdicts)
      : truth_(truth),
        max_dets_(options.max_dets),
        overlaps_(truth, detections, options.kind),
        verdicts_(verdicts) {}

  /// Sorts the pair's detections [at, after) and decides about them.
  ///
  /// begin, end   its annotations.
  void match_pair(std::int64_t at, std::int64_t after, std::int64_t begin, std::int64_t end) {
    const auto found = std::span(verdicts_.found).subspan(at, after - at);
    if (found.size() > 1) std::ranges::sort(found, is_before);
    const auto kept = found.first(std::min<std::size_t>(found.size(), max_dets_.back()));
    if (begin < end) {
      overlaps_.compute(kept, begin, end);
      counted_.clear();
      for (std::int64_t g = begin; g < end; ++g) counted_.push_back(slots_of_truth(truth_, g));
      taken_.assign(end - begin, 0);
    }
    std::uint8_t limit = 0;
    for (std::int64_t d = 0; d < std::ssize(kept); ++d) {
      while (d >= max_dets_[limit]) ++limit;
      verdicts_.first_limit[at + d] = limit;
      find_candidates(d, end - begin);
      decide(at + d, begin);
    }
  }

 private:
  struct Candidate {
    double iou;
    std::int64_t annotation;
  };

  /// Of equal scores the first that came.
  static bool is_before(const Found& a, const Found& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }

  /// Annotations that reach a threshold, most overlap first, the last of equals before the others.
  void find_candidates(std::int64_t d, std::int64_t num_annotations) {
    candidates_.clear();
    for (std::int64_t g = 0; g < num_annotations; ++g) {
      const double iou = overlaps_.at(d, g);
      if (iou >= kIouThresholds[0]) candidates_.push_back({iou, g});
    }
    if (candidates_.size() < 2) return;
    std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
      return a.iou != b.iou ? a.iou > b.iou : a.annotation > b.annotation;
    });
  }

  void decide(std::int64_t at, std::int64_t begin) {
    Slots matched = 0, ignored = 0, open = kAllSlots;
    for (const bool is_counted : {true, false}) {
      for (const auto& [iou, g] : candidates_) {
        const Slots taken =
            open & slots_of_iou(iou) & ~taken_[g] & (is_counted ? counted_[g] : ~counted_[g]);
        open &= ~taken;
        if (truth_.is_crowd[begin + g] == 0) taken_[g] |= taken;
        if (!is_counted) ignored |= taken;
        if (truth_.ids[begin + g] != 0) matched |= taken;
      }
    }
    ignored |= ~matched & ~slots_of_area(verdicts_.found[at].area);
    verdicts_.hits[at] = matched & ~ignored;
    verdicts_.misses[at] = ~matched & ~ignored & kAllSlots;
  }

  const CocoGroundTruth& truth_;
  const std::array<int, CocoCurves::kLimits> max_dets_;
  Overlaps overlaps_;
  Verdicts& verdicts_;
  std::vector<Slots> counted_;  // of each annotation
  std::vector<Slots> taken_;
  std::vector<Candidate> candidates_;
};

/// The first position from `at` on, but not beyond `end`, with another image.
std::int64_t end_of_image(const std::vector<Found>& found, std::int64_t at, std::int64_t end) {
  std::int64_t after = at + 1;
  while (after < end && found[after].image == found[at].image) ++after;
  return after;
}

/// Matches what [from, to) has of a category; both are between pairs.
void match_category(const CocoGroundTruth& truth, const Verdicts& verdicts, std::int64_t category,
                    std::int64_t from, std::int64_t to, Matcher& matcher) {
  std::int64_t at = std::max(from, verdicts.category_begin[category]);
  const std::int64_t end = std::min(to, verdicts.category_begin[category + 1]);
  if (at >= end) return;
  const auto images = std::span(truth.images).first(truth.category_begin[category + 1]);
  auto begin = std::lower_bound(images.begin() + truth.category_begin[category], images.end(),
                                verdicts.found[at].image);
  while (at < end) {
    const std::int32_t image = verdicts.found[at].image;
    const std::int64_t after = end_of_image(verdicts.found, at, end);
    while (begin != images.end() && *begin < image) ++begin;
    auto last = begin;
    while (last != images.end() && *last == image) ++last;
    matcher.match_pair(at, after, begin - images.begin(), last - images.begin());
    at = after;
  }
}

/// The category that has the detection at a position.
std::int64_t category_at(const Verdicts& verdicts, std::int64_t at) {
  const auto& begin = verdicts.category_begin;
  return std::ranges::upper_bound(begin, at) - begin.begin() - 1;
}

/// Positions between pairs, about as many detections from each other.
std::vector<std::int64_t> cuts(const Verdicts& verdicts) {
  constexpr std::int64_t kPiece = 4096;  // detections; some 0.3 ms
  const std::int64_t n = std::ssize(verdicts.found);
  std::vector<std::int64_t> cuts = {0};
  for (std::int64_t at = kPiece; at < n; at += kPiece) {
    const std::int64_t category = category_at(verdicts, at);
    const bool is_between = at == verdicts.category_begin[category];
    const std::int64_t end = verdicts.category_begin[category + 1];
    cuts.push_back(is_between ? at : end_of_image(verdicts.found, at - 1, end));
  }
  cuts.push_back(n);
  return cuts;
}

}  // namespace

Verdicts match(const CocoGroundTruth& truth, const CocoDetections& detections,
               const CocoOptions& options) {
  Verdicts verdicts = sorted(truth, detections);
  const std::vector<std::int64_t> cut = cuts(verdicts);
  options.spread(std::ssize(cut) - 1, [&](std::int64_t piece) {
    Matcher matcher(truth, detections, options, verdicts);
    const std::int64_t from = cut[piece], to = cut[piece + 1];
    for (std::int64_t at = from; at < to;) {
      const std::int64_t category = category_at(verdicts, at);
      match_category(truth, verdicts, category, from, to, matcher);
      at = verdicts.category_begin[category + 1];
    }
  });
  return verdicts;
}

}  // namespace trireme::vision::internal
