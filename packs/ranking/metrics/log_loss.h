#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/spread.h"

namespace trireme::ranking {

/// What log loss is made of. Parts (batches, ranks) add up.
struct LogLoss {
  double sum = 0;  ///< Of -ln p where the label is 1, of -ln(1 - p) where it is 0; in nats.
  std::int64_t num_samples = 0;
  std::int64_t num_positives = 0;

  LogLoss& operator+=(const LogLoss& other);

  /// The mean cross entropy; NaN without samples.
  double mean() const;

  /// mean() over the entropy of the share of positives: 1 for a model that always predicts that
  /// share. NaN without samples, infinity or NaN with one class.
  double normalized_entropy() const;
};

/// As scikit-learn's `log_loss`: of p, or of 1 - p rounded to its type, clipped to [eps, 1 - eps]
/// with the type's eps (2^-52 of f64, 2^-23 of f32). Logarithms and sums are f64 for both; those of
/// scikit-learn are of the type.
///
/// probabilities   within [0, 1].
/// labels          as many: 1 positive, 0 negative.
/// Errors          kInvalidArgument, naming the index of a probability outside [0, 1] or NaN, or of
///                 a label that is neither 0 nor 1.
/// Order           sample i adds to sum i mod 16 of a block of 4,096; then neighbours of 1, 2, 4
///                 and 8 sums; then blocks in order.
///                 Threads change nothing.
/// Cost            reads both once, a logarithm in f64 for each sample.
/// Source          He et al., "Practical lessons from predicting clicks on ads at Facebook", 2014
///                 (normalized entropy).
LogLoss log_loss(std::span<const double> probabilities, std::span<const std::uint8_t> labels,
                 const kernels::Spread& spread = kernels::on_caller);
LogLoss log_loss(std::span<const float> probabilities, std::span<const std::uint8_t> labels,
                 const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::ranking
