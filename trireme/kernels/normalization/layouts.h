#pragma once

#include <vector>

#include "trireme/kernels/normalization/channel.h"

namespace trireme::kernels::internal {

// Of elements of type T, float or Bf16.

// Channels first: one channel after the other, each of which may stay in the cache between passes.
namespace channels_first {
template <typename T>
Moments moments(const BatchNormShape& shape, const T* x, std::int64_t channel);
template <typename T>
void apply(const BatchNormShape& shape, const BatchNormForwardOf<T>& arrays, std::int64_t channel);
template <typename T>
GradientSums gradient_sums(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
                           std::int64_t channel);
template <typename T>
void gradient(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
              std::int64_t channel, const GradientSums& sums);
}  // namespace channels_first

// Channels last: all channels of a block of places at a time.
namespace channels_last {
template <typename T>
std::vector<Moments> moments(const BatchNormShape& shape, const T* x, const Spread& spread);
template <typename T>
void apply(const BatchNormShape& shape, const BatchNormForwardOf<T>& arrays, const Spread& spread);
template <typename T>
std::vector<GradientSums> gradient_sums(const BatchNormShape& shape,
                                        const BatchNormBackwardOf<T>& arrays, const Spread& spread);
template <typename T>
void gradient(const BatchNormShape& shape, const BatchNormBackwardOf<T>& arrays,
              const std::vector<GradientSums>& sums, const Spread& spread);
}  // namespace channels_last

/// Arrays that may be null.
template <typename T>
T* at(T* array, std::int64_t offset) {
  return array == nullptr ? nullptr : array + offset;
}

inline std::int64_t words_of_row(std::int64_t elements) { return (elements + 15) / 16; }

}  // namespace trireme::kernels::internal
