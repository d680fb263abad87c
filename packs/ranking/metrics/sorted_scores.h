#pragma once

#include <cstdint>
#include <span>

#include "packs/ranking/metrics/parted_scores.h"

namespace trireme::ranking {

/// Items (parted_scores.h) in order, those below zero apart.
class SortedScores {
 public:
  /// scores   destroyed.
  /// Errors   those of PartedScores.
  SortedScores(std::span<float> scores, std::span<const std::uint8_t> labels,
               const kernels::Spread& spread = kernels::on_caller);

  std::span<const std::uint32_t> below_zero() const {
    return parted_.items().first(parted_.begin(PartedScores::kBucketsOfSign));
  }
  std::span<const std::uint32_t> others() const {
    return parted_.items().subspan(parted_.begin(PartedScores::kBucketsOfSign));
  }

 private:
  PartedScores parted_;
};

}  // namespace trireme::ranking
