#pragma once

#include <cstdint>
#include <span>

namespace trireme::ranking {

/// Pairs of a positive and a negative, counted over items (parted_scores.h) bucket by bucket.
struct Pairs {
  std::uint64_t num_negatives = 0;
  std::uint64_t num_positives = 0;
  std::uint64_t above_or_equal = 0;  ///< In which the positive has no lower score.
  std::uint64_t equal = 0;

  /// Adds the pairs of these items and of positives here with negatives before.
  ///
  /// A radix sort whose last pass moves nothing: when items come in the order of all digits but the
  /// highest, a positive stands above those negatives of its highest digit that came before it, and
  /// above all of lower ones.
  ///
  /// items   none below an item of an earlier call; left in some order.
  /// other   as many, overwritten.
  /// Cost    a reading and a writing for each digit of 11 bits by which they differ but one, and
  ///         one reading more.
  void add(std::span<std::uint32_t> items, std::span<float> other);

  /// Adds the pairs of items of which none is below one that is counted here.
  void append(const Pairs& above);
};

}  // namespace trireme::ranking
