#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

struct LarsOptions {
  double learning_rate = 1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;
  double epsilon = 1e-8;
  bool adapts = true;  ///< Else the ratio is 1: biases and norms.
};

/// One step of LARS for a tensor:
///
///     ratio = trust |p| / (|g| + weight_decay |p| + epsilon)
///     b     = momentum b + ratio (g + weight_decay p)
///     p     = p - learning_rate b
///
/// Norms are square roots of `square_norm` (norm/norm.h); where one is 0, as of zeros at the start,
/// the ratio is 1. Elements: each operation rounds to f32, constants are computed in f64 and
/// rounded once.
///
/// gradient   [n], left as it is.
/// buffer     [n] b, updated; zeros before the first step. As bf16 it is rounded to nearest, ties
///            to even; the parameter is changed by it unrounded.
/// parameter  [n], updated. No arrays overlap.
/// spread     threads share the elements; they change nothing.
/// Cost       8 bytes read for each element for the norms; 20 read or written for the update.
/// Source     You et al., "Large batch training of convolutional networks", 2017, algorithm 1.
void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n, const Spread& spread = on_caller);
void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n, const Spread& spread = on_caller);

/// The same by norms that are known, for a part of the tensor.
///
/// weight, slope   squares of |p| and |g|, of the whole tensor.
void lars(const LarsOptions& options, double weight, double slope, const float* gradient,
          float* buffer, float* parameter, std::int64_t n, const Spread& spread = on_caller);

}  // namespace trireme::kernels
