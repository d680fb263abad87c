#pragma once

#include <span>
#include <string>

#include "benchmarks/kernels/tensors.h"

namespace trireme::kernels::bench {

// What of a result with dropout does not depend on which elements are dropped. Results and gradients
// are linear in the mask that drops and scales:
//
//     slope  <dropped, plain> / <plain, plain>    1 but for noise: 0 of zeros, 1 - p where the
//                                                 scale is missing, -1 of a wrong sign
//     noise  |dropped - plain|^2 / |plain|^2      a mask's own: 0 where nothing is dropped
//
// and sums of products are equal where one mask made both sides (identity), 0.9 where a backward
// drew another one.

/// Adds `name`_slope and `name`_noise, [1] each.
void add_statistics(const std::string& name, std::span<const float> dropped,
                    std::span<const float> plain, Tensors& outputs);

/// The sum of products in f64.
double product(std::span<const float> a, std::span<const float> b);

/// Adds left / right, [1].
void add_identity(const std::string& name, double left, double right, Tensors& outputs);

/// Differences of these between two draws that are right; those of identities.
inline constexpr double kStatisticsTolerance = 3e-2;
inline constexpr double kIdentityTolerance = 1e-3;

}  // namespace trireme::kernels::bench
