#pragma once

// What a batch norm computes once for each channel, on processors and on GPUs (cuda/).

#include <cstdint>

#include "trireme/kernels/normalization/batch_norm.h"
#include "trireme/kernels/normalization/rows.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::internal {

/// Mean of a channel's elements and their squared distances from it, of this rank.
struct Moments {
  double mean = 0;
  double squares = 0;
};

/// What backward sums over a channel: g and g (x - mean).
using GradientSums = Sums;

template <typename T>
TRIREME_INLINE_LOOP void set_statistics(const BatchNormOptions& options,
                                        const BatchNormForwardOf<T>& arrays, std::int64_t channel,
                                        const Moments& moments) {
  const BatchNormStatistics& statistics = arrays.statistics;
  const double squares = moments.squares / *statistics.count;
  const double variance = squares < 0 ? 0 : squares;  // what cancels may round below 0; NaN stays
  if (arrays.variance != nullptr) arrays.variance[channel] = static_cast<float>(variance);
  statistics.mean[channel] = static_cast<float>(moments.mean);
  statistics.inverse_deviation[channel] =
      static_cast<float>(1 / square_root(variance + static_cast<double>(options.epsilon)));
}

template <typename T>
TRIREME_INLINE_LOOP void set_parameter_gradients(const BatchNormBackwardOf<T>& arrays,
                                                 std::int64_t channel, const GradientSums& sums) {
  arrays.gradient_beta[channel] = static_cast<float>(sums.first);
  arrays.gradient_gamma[channel] = static_cast<float>(
      sums.second * static_cast<double>(arrays.statistics.inverse_deviation[channel]));
}

/// dx = factor g + slope (x - mean) + offset, with sums over all ranks.
template <typename T>
TRIREME_INLINE_LOOP Backward backward_terms(const BatchNormBackwardOf<T>& arrays,
                                            std::int64_t channel, const GradientSums& sums) {
  const double inverse = static_cast<double>(arrays.statistics.inverse_deviation[channel]);
  const double factor = static_cast<double>(arrays.gamma[channel]) * inverse;
  const double count = *arrays.statistics.count;
  return {arrays.statistics.mean[channel], static_cast<float>(factor),
          static_cast<float>(-factor * inverse * inverse * sums.second / count),
          static_cast<float>(-factor * sums.first / count)};
}

}  // namespace trireme::kernels::internal
