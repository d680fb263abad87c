#include "packs/ranking/metrics/sorted_scores.h"

#include <algorithm>
#include <bit>

#include "packs/ranking/metrics/radix.h"

namespace trireme::ranking {
namespace {

/// Ascending. other: as many, overwritten.
void sort(std::span<std::uint32_t> items, std::span<float> other) {
  if (items.empty()) return;
  const Digits digits = digits_of(items);
  order_by_first(digits.count, digits, items, other);
  if (digits.count % 2 == 0) return;
  std::ranges::transform(other, items.begin(),
                         [](float word) { return std::bit_cast<std::uint32_t>(word); });
}

}  // namespace

SortedScores::SortedScores(std::span<float> scores, std::span<const std::uint8_t> labels,
                           const kernels::Spread& spread)
    : parted_(scores, labels, spread) {
  constexpr std::uint32_t kBucketsOfPiece = 32;
  const kernels::Spread& used =
      kernels::spread_or_caller(spread, std::ssize(scores), PartedScores::kWorthThreads);
  used(PartedScores::kBuckets / kBucketsOfPiece, [&](std::int64_t piece) {
    const auto first = static_cast<std::uint32_t>(piece) * kBucketsOfPiece;
    for (std::uint32_t b = first; b < first + kBucketsOfPiece; ++b) {
      const auto items = parted_.bucket(b);
      sort(items, scores.subspan(parted_.begin(b), items.size()));
    }
  });
}

}  // namespace trireme::ranking
