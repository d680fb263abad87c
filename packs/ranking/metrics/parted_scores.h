#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "trireme/kernels/spread.h"

namespace trireme::ranking {

/// Scores with their labels in 32 bits each, parted into buckets that ascend; within one they are
/// in no order. An item is
///
///     2 k + label     k: the float's bits, for those below zero all flipped, without the sign
///
/// so that items of one sign are in the order of scores, and of equal scores the negatives come
/// first. -0 counts as 0.
///
/// Buckets are of even width by value, so that even scores fill them evenly and each is in the
/// cache when it is ordered. Uneven scores make larger buckets: slower, not wrong.
class PartedScores {
 public:
  static constexpr std::uint32_t kBucketsOfSign = 1024;
  static constexpr std::uint32_t kBuckets = 2 * kBucketsOfSign;  ///< The first half: below zero.
  static constexpr std::int64_t kWorthThreads = 1 << 17;         ///< Scores: some 2 ms.

  /// labels   as many as scores.
  /// Errors   kInvalidArgument, naming the index of a score that is NaN or of a label that is
  ///          neither 0 nor 1; beyond 2^32 - 1 scores.
  /// Cost     reads both twice, writes 4 bytes for each score to a thousand places in turn.
  PartedScores(std::span<const float> scores, std::span<const std::uint8_t> labels,
               const kernels::Spread& spread = kernels::on_caller);

  std::span<std::uint32_t> items() const { return {items_.get(), begins_.back()}; }

  std::size_t begin(std::uint32_t bucket) const { return begins_[bucket]; }
  std::span<std::uint32_t> bucket(std::uint32_t bucket) const {
    return items().subspan(begins_[bucket], begins_[bucket + 1] - begins_[bucket]);
  }

 private:
  std::array<std::uint32_t, kBuckets + 1> begins_;
  struct Free {
    void operator()(std::uint32_t* memory) const;
  };
  std::unique_ptr<std::uint32_t[], Free> items_;
};

}  // namespace trireme::ranking
