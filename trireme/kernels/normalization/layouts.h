#pragma once

#include <vector>

#include "trireme/kernels/normalization/channel.h"

namespace trireme::kernels::internal {

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

/// Arrays that may be null.
template <typename T>
T* at(T* array, std::int64_t offset) {
  return array == nullptr ? nullptr : array + offset;
}

inline std::int64_t words_of_row(std::int64_t elements) { return (elements + 15) / 16; }

}  // namespace trireme::kernels::internal
