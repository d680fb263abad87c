#pragma once

#include <vector>

#include "trireme/kernels/normalization/batch_norm.h"
#include "trireme/kernels/normalization/rows.h"

namespace trireme::kernels::internal {

/// Mean of a channel's elements and their squared distances from it, of this rank.
struct Moments {
  double mean = 0;
  double squares = 0;
};

/// What backward sums over a channel: g and g (x - mean).
using GradientSums = Sums;

// Channels first: one channel after the other, each of which may stay in the cache between passes.
namespace channels_first {
Moments moments(const BatchNormShape& shape, const float* x, std::int64_t channel);
void apply(const BatchNormShape& shape, const BatchNormForward& arrays, std::int64_t channel);
GradientSums gradient_sums(const BatchNormShape& shape, const BatchNormBackward& arrays,
                           std::int64_t channel);
void gradient(const BatchNormShape& shape, const BatchNormBackward& arrays, std::int64_t channel,
              const GradientSums& sums);
}  // namespace channels_first

// Channels last: all channels of a block of places at a time.
namespace channels_last {
std::vector<Moments> moments(const BatchNormShape& shape, const float* x, const Spread& spread);
void apply(const BatchNormShape& shape, const BatchNormForward& arrays, const Spread& spread);
std::vector<GradientSums> gradient_sums(const BatchNormShape& shape,
                                        const BatchNormBackward& arrays, const Spread& spread);
void gradient(const BatchNormShape& shape, const BatchNormBackward& arrays,
              const std::vector<GradientSums>& sums, const Spread& spread);
}  // namespace channels_last

/// dx = factor g + slope (x - mean) + offset, with sums over all ranks.
Backward backward_terms(const BatchNormBackward& arrays, std::int64_t channel,
                        const GradientSums& sums);

inline std::int64_t words_of_row(std::int64_t elements) { return (elements + 15) / 16; }

}  // namespace trireme::kernels::internal
