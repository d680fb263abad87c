#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>

namespace trireme::ranking {

constexpr int kMostDigitBits = 11;

/// What a radix sort of some items looks at: the digits of item - low. There are two or more, so
/// that the highest does not reach down to the label.
struct Digits {
  std::uint32_t low = 0;  ///< Even: without a label.
  int count = 2;
  int bits = 1;  ///< Of a digit, at most kMostDigitBits.

  std::uint32_t size() const { return std::uint32_t{1} << bits; }
  std::uint32_t of(std::uint32_t item, int digit) const {
    return (item - low) >> (digit * bits) & (size() - 1);
  }
};

/// As few digits as cover the items' range, as short as that allows.
inline Digits digits_of(std::span<const std::uint32_t> items) {
  std::uint32_t low = items[0], high = items[0];
  for (const std::uint32_t item : items) {
    low = item < low ? item : low;
    high = item > high ? item : high;
  }
  low &= ~1U;
  const int width = std::max(static_cast<int>(std::bit_width(high - low)), 2);
  const int count = std::max((width + kMostDigitBits - 1) / kMostDigitBits, 2);
  return {low, count, (width + count - 1) / count};
}

/// Orders items by one digit, stably. Either side may be the bits of floats.
/// to   as many.
template <typename From, typename To>
void order_by(const Digits& digits, int digit, std::span<From> from, std::span<To> to) {
  std::array<std::uint32_t, 1 << kMostDigitBits> all_places;
  const auto places = std::span(all_places).first(digits.size());
  const auto digit_of = [&](From item) {
    return digits.of(std::bit_cast<std::uint32_t>(item), digit);
  };
  std::ranges::fill(places, 0);
  for (const From item : from) ++places[digit_of(item)];
  std::exclusive_scan(places.begin(), places.end(), places.begin(), 0U);
  for (const From item : from) to[places[digit_of(item)]++] = std::bit_cast<To>(item);
}

/// Orders items by their digits below `count`; they are then in `other` if count is odd.
inline void order_by_first(int count, const Digits& digits, std::span<std::uint32_t> items,
                           std::span<float> other) {
  for (int digit = 0; digit < count; ++digit) {
    if (digit % 2 == 0) {
      order_by(digits, digit, items, other);
    } else {
      order_by(digits, digit, other, items);
    }
  }
}

}  // namespace trireme::ranking
