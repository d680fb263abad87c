#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 1e-2;

  /// Tensors without weight decay adapt too, which is NVLAMB's rule; else their trust ratio is 1.
  bool adapts_always = true;
};

/// One step of LAMB for a tensor:
///
///     m = beta1 m + (1 - beta1) g             v = beta2 v + (1 - beta2) g^2
///     u = (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon) + weight_decay p
///     p = p - learning_rate |p| / |u| u
///
/// Norms are square roots of f64 sums by norm block (norm/norm.h); where one is 0, as of zeros at
/// the start, the trust ratio |p| / |u| is 1. Elements: each operation rounds to f32, constants are
/// computed in f64 and rounded once.
///
/// step       counts from 1, else kInvalidArgument.
/// gradient   [n], left as it is.
/// m, v       [n], updated; zeros before the first step. As bf16 they are rounded to nearest, ties
///            to even, before the parameter is changed by them; v stands still where a step changes
///            it by less than 2^-9 of itself: it wants beta2 <= 0.99.
/// parameter  [n], updated. No arrays overlap.
/// spread     threads share the elements; they change nothing.
/// Cost       24 bytes read or written for each element in a first pass, for the norms; 16 in the
///            second, which updates.
/// Source     You et al., "Large batch optimization for deep learning", ICLR 2020, algorithm 2.
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n, const Spread& spread = on_caller);
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n, const Spread& spread = on_caller);

/// Sums of squares of p and u: of a norm block, or of a tensor.
struct LambSums {
  double parameter = 0;
  double update = 0;
};

/// The same step in two parts, for a tensor of which a process has some norm blocks: m, v, and the sums of each block;
/// then p, by the sums of all blocks of the tensor folded left.
///
/// n        elements here, from a norm block on.
/// blocks   one for each norm block of n elements.
void lamb_moments(const LambOptions& options, std::int64_t step, const float* gradient, float* m,
                  float* v, const float* parameter, std::int64_t n, std::span<LambSums> blocks,
                  const Spread& spread = on_caller);
void lamb_update(const LambOptions& options, std::int64_t step, const LambSums& tensor,
                 const float* m, const float* v, float* parameter, std::int64_t n,
                 const Spread& spread = on_caller);

}  // namespace trireme::kernels
