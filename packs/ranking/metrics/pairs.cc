#include "packs/ranking/metrics/pairs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "packs/ranking/metrics/radix.h"

namespace trireme::ranking {
namespace {

constexpr std::size_t kSmall = 64;  ///< So few are sorted by comparing.

/// What has come with one highest digit.
struct Seen {
  std::uint32_t num_negatives, num_positives;
  std::uint32_t last_item;
  std::uint32_t tied_negatives;  ///< Of the last item's score.
};

/// items   in the order of all digits but `highest`; or the bits of such.
template <typename Item>
void add_ordered(std::span<Item> items, const Digits& digits, int highest, Pairs& pairs) {
  std::array<Seen, 1 << kMostDigitBits> all_seen;
  const auto seen = std::span(all_seen).first(digits.size());
  std::ranges::fill(seen, Seen{});
  std::uint64_t above_or_equal = 0, equal = 0;
  // Without branches: labels cannot be guessed.
  for (const Item bits : items) {
    const auto item = std::bit_cast<std::uint32_t>(bits);
    Seen& here = seen[digits.of(item, highest)];
    const std::uint32_t is_positive = item & 1, is_negative = 1 - is_positive;
    const std::uint32_t if_positive = 0 - is_positive;
    const std::uint32_t if_tied = 0 - static_cast<std::uint32_t>((item ^ here.last_item) <= 1);
    here.last_item = item;
    here.tied_negatives = (here.tied_negatives & if_tied) + is_negative;
    here.num_negatives += is_negative;
    here.num_positives += is_positive;
    above_or_equal += here.num_negatives & if_positive;
    equal += here.tied_negatives & if_positive;
  }
  for (const Seen& here : seen) {
    above_or_equal += here.num_positives * pairs.num_negatives;
    pairs.num_negatives += here.num_negatives;
    pairs.num_positives += here.num_positives;
  }
  pairs.above_or_equal += above_or_equal;
  pairs.equal += equal;
}

}  // namespace

void Pairs::add(std::span<std::uint32_t> items, std::span<float> other) {
  if (items.empty()) return;
  if (items.size() <= kSmall) {
    std::ranges::sort(items);
    return add_ordered(items, {.count = 1, .bits = 0}, 0, *this);  // One digit for all.
  }
  const Digits digits = digits_of(items);
  const int highest = digits.count - 1;
  order_by_first(highest, digits, items, other);
  if (highest % 2 == 0) {
    add_ordered(items, digits, highest, *this);
  } else {
    add_ordered(other, digits, highest, *this);
  }
}

void Pairs::append(const Pairs& above) {
  above_or_equal += above.above_or_equal + above.num_positives * num_negatives;
  equal += above.equal;
  num_negatives += above.num_negatives;
  num_positives += above.num_positives;
}

}  // namespace trireme::ranking
