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

#include "trireme/evaluate/coco/overlaps.h"
#include "trireme/evaluate/coco/slots.h"

namespace trireme::evaluate::internal {
namespace {

/// Ascending as scores descend; 0 and -0 are equal.
std::uint64_t key_of(double score) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
  return (bits & kSign) != 0 ? bits : ~(bits | kSign);
}

/// Positions of `order` sorted by a bucket, stable; where each bucket begins.
struct Sorted {
  std::vector<std::int32_t> order;
  std::vector<std::int64_t> begin;
};

Sorted sort_into(const std::vector<std::int32_t>& order, const std::vector<std::int32_t>& bucket_of,
                 std::int64_t num_buckets) {
  Sorted sorted{.order = std::vector<std::int32_t>(order.size()),
                .begin = std::vector<std::int64_t>(num_buckets + 1, 0)};
  for (const std::int32_t bucket : bucket_of) ++sorted.begin[bucket + 1];
  std::partial_sum(sorted.begin.begin(), sorted.begin.end(), sorted.begin.begin());
  std::vector<std::int64_t> next(sorted.begin.begin(), sorted.begin.end() - 1);
  for (const std::int32_t i : order) sorted.order[next[bucket_of[i]]++] = i;
  return sorted;
}

/// Matches pairs of an image and category, one after the other.
class Matcher {
 public:
  Matcher(const CocoGroundTruth& truth, const CocoDetections& detections,
          const CocoOptions& options)
      : truth_(truth),
        detections_(detections),
        options_(options),
        overlaps_(truth, detections, options.kind) {}

  /// order    all detections of the pair, in the order they came; what becomes of element i is
  ///          written to element at + i of the verdicts.
  /// begin, end   its annotations.
  void match_pair(std::span<const std::int32_t> order, std::int64_t at, std::int64_t begin,
                  std::int64_t end, Verdicts& verdicts) {
    sort_by_score(order);
    if (begin < end) {
      overlaps_.compute(kept_, begin, end);
      counted_.clear();
      for (std::int64_t g = begin; g < end; ++g) counted_.push_back(slots_of_truth(truth_, g));
      taken_.assign(end - begin, 0);
    }
    for (std::int64_t d = 0; d < std::ssize(kept_); ++d) {
      verdicts.keys[at + d] = keys_[d].first;
      verdicts.first_limit[at + d] = first_limit(d);
      judge(d, begin, end, verdicts.hits[at + d], verdicts.misses[at + d]);
    }
  }

 private:
  struct Candidate {
    double iou;
    std::int64_t annotation;
  };

  void sort_by_score(std::span<const std::int32_t> order) {
    keys_.clear();
    for (const std::int32_t i : order) keys_.emplace_back(key_of(detections_.scores[i]), i);
    if (keys_.size() > 1) std::ranges::sort(keys_);  // of equal scores the first that came
    keys_.resize(std::min<std::size_t>(keys_.size(), options_.max_dets.back()));
    kept_.clear();
    for (const auto& [key, i] : keys_) kept_.push_back(i);
  }

  std::uint8_t first_limit(std::int64_t d) const {
    std::uint8_t limit = 0;
    while (d >= options_.max_dets[limit]) ++limit;
    return limit;
  }

  void judge(std::int64_t d, std::int64_t begin, std::int64_t end, Slots& hits, Slots& misses) {
    Slots found = 0, ignored = 0, open = kAllSlots;
    find_candidates(d, end - begin);
    for (const bool is_counted : {true, false}) {
      for (const Candidate& candidate : candidates_) {
        const std::int64_t g = candidate.annotation;
        const Slots taken = open & slots_of_iou(candidate.iou) & ~taken_[g] &
                            (is_counted ? counted_[g] : ~counted_[g]);
        open &= ~taken;
        if (truth_.is_crowd[begin + g] == 0) taken_[g] |= taken;
        if (!is_counted) ignored |= taken;
        if (truth_.ids[begin + g] != 0) found |= taken;
      }
    }
    ignored |= ~found & ~slots_of_area(detections_.areas[kept_[d]]);
    hits = found & ~ignored;
    misses = ~found & ~ignored & kAllSlots;
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

  const CocoGroundTruth& truth_;
  const CocoDetections& detections_;
  const CocoOptions& options_;
  Overlaps overlaps_;
  std::vector<std::pair<std::uint64_t, std::int32_t>> keys_;  // of the kept detections
  std::vector<std::int32_t> kept_;
  std::vector<Slots> counted_;  // of each annotation
  std::vector<Slots> taken_;
  std::vector<Candidate> candidates_;
};

/// Detections in the order category, image, as they came; cut into pieces for threads.
class Pairs {
 public:
  Pairs(const CocoGroundTruth& truth, const CocoDetections& detections)
      : truth_(truth), detections_(detections) {
    std::vector<std::int32_t> order(detections.size());
    std::iota(order.begin(), order.end(), 0);
    order = sort_into(order, detections.images, truth.num_images()).order;
    sorted_ = sort_into(order, detections.categories, truth.num_categories());
  }

  const std::vector<std::int64_t>& category_begin() const { return sorted_.begin; }

  std::int64_t num_pieces() const { return (detections_.size() + kPiece - 1) / kPiece; }

  /// Matches the pairs that begin in a piece.
  void match_piece(std::int64_t piece, Matcher& matcher, Verdicts& verdicts) const {
    std::int64_t at = piece * kPiece;
    const std::int64_t piece_end = std::min(at + kPiece, detections_.size());
    while (at > 0 && at < piece_end && is_same_pair(at - 1, at)) ++at;
    std::int64_t begin = 0;  // annotation
    for (std::int32_t category = -1; at < piece_end;) {
      const std::int32_t i = sorted_.order[at];
      std::int64_t end_of_category = truth_.category_begin[detections_.categories[i] + 1];
      if (detections_.categories[i] != category) {
        category = detections_.categories[i];
        begin = truth_.category_begin[category];
        const auto first = truth_.images.begin() + begin;
        begin = std::lower_bound(first, truth_.images.begin() + end_of_category,
                                 detections_.images[i]) -
                truth_.images.begin();
      }
      const auto skip = [&](auto is_before, std::int64_t annotation) {
        while (annotation < end_of_category && is_before(truth_.images[annotation])) ++annotation;
        return annotation;
      };
      const std::int32_t image = detections_.images[i];
      begin = skip([&](std::int32_t other) { return other < image; }, begin);
      const std::int64_t end = skip([&](std::int32_t other) { return other == image; }, begin);
      std::int64_t after = at + 1;
      while (after < detections_.size() && is_same_pair(at, after)) ++after;
      matcher.match_pair(std::span(sorted_.order).subspan(at, after - at), at, begin, end,
                         verdicts);
      at = after;
    }
  }

 private:
  static constexpr std::int64_t kPiece = 4096;  // detections; some 0.3 ms

  bool is_same_pair(std::int64_t a, std::int64_t b) const {
    const std::int32_t i = sorted_.order[a], j = sorted_.order[b];
    return detections_.images[i] == detections_.images[j] &&
           detections_.categories[i] == detections_.categories[j];
  }

  const CocoGroundTruth& truth_;
  const CocoDetections& detections_;
  Sorted sorted_;
};

}  // namespace

Verdicts match(const CocoGroundTruth& truth, const CocoDetections& detections,
               const CocoOptions& options) {
  const Pairs pairs(truth, detections);
  const std::int64_t n = detections.size();
  constexpr std::uint8_t kNone = CocoCurves::kLimits;
  Verdicts verdicts{.category_begin = pairs.category_begin(),
                    .keys = std::vector<std::uint64_t>(n),
                    .first_limit = std::vector<std::uint8_t>(n, kNone),
                    .hits = std::vector<Slots>(n),
                    .misses = std::vector<Slots>(n)};
  options.spread(pairs.num_pieces(), [&](std::int64_t piece) {
    Matcher matcher(truth, detections, options);
    pairs.match_piece(piece, matcher, verdicts);
  });
  return verdicts;
}

}  // namespace trireme::evaluate::internal
