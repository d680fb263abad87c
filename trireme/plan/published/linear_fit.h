#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "trireme/plan/published/run_case.h"

namespace trireme::published {

inline constexpr std::size_t kNumFeatures = 8;

/// What a step should be about a weighted sum of, whatever the weights: seconds at the makers' peaks of (0) its products, (1) the
/// same in the bubble, (2) bytes between products, (3) sums of tensor groups, (4) of gradients, (5) messages of the
/// pipeline, (6) parameters gathered or updated; and (7) one second.
std::array<double, kNumFeatures> features(const RunCase& one);

/// Weights of the features that make the sum of squared relative errors least. No knowledge beside
/// the features: what a predictor must beat.
class LinearFit {
 public:
  /// cases   at least one, else kInvalidArgument.
  explicit LinearFit(std::span<const RunCase> cases);

  /// Seconds, at least a microsecond.
  double predict(const RunCase& one) const;

 private:
  std::array<double, kNumFeatures> weights_ = {};
};

}  // namespace trireme::published
