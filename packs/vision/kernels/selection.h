#pragma once

#include <cstdint>
#include <span>

namespace trireme::vision {

// Choices whose results have fixed sizes: nothing waits for a count, and graphs keep their shapes.

/// SSD's hard negatives: of each image, the background anchors with the largest losses, `ratio`
/// times as many as it has matched ones; equal losses in order of their index.
///
/// losses       [n] of one image, of every anchor.
/// is_matched   [n] 0 or 1.
/// ratio        0 or more; infinity takes all negatives.
/// is_chosen    [n], written: 1 for matched anchors and hard negatives.
/// Returns      how many are chosen.
/// Errors       kInvalidArgument naming the anchor whose loss is NaN; where sizes do not match, or
///              are 2^32 or more; for a ratio that is negative or NaN.
/// Cost         linear on average: a selection, no sort; 16 bytes for each hard negative.
std::int64_t mine_hard_negatives(std::span<const float> losses,
                                 std::span<const std::uint8_t> is_matched, double ratio,
                                 std::span<std::uint8_t> is_chosen);

/// Indices of the elements that are not 0, in order, into a fixed number of places; those left over
/// repeat the found ones from the first on (0 where there are none).
///
/// Returns   how many there are, at most the number of places.
std::int64_t fixed_nonzero(std::span<const std::uint8_t> values, std::span<std::int64_t> places);

namespace internal {

/// Of hard negatives.
void check_ratio(double ratio);

}  // namespace internal

}  // namespace trireme::vision
