#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"

namespace trireme::kernels {

// Optimizers whose step for a tensor depends on norms over all of it. Two passes: the first reads
// what the norms need, the second updates. Norms are square roots of `square_norm` (norm/norm.h):
// f64 sums by norm block. Elements: each operation rounds to f32, constants are computed in f64 and
// rounded once.
//
// Arrays of a tensor are [n] and do not overlap. A tensor of norm 0 (all zeros at the start) has
// the trust ratio 1. Moments may be kept as bf16, rounded to nearest, ties to even: LARS and
// NovoGrad change the parameter by the moment before it is rounded, LAMB, whose second pass reads
// it again, after. Errors: kInvalidArgument where a step is below 1.

/// LAMB:
///
///     m = beta1 m + (1 - beta1) g             v = beta2 v + (1 - beta2) g^2
///     u = (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon) + weight_decay p
///     p = p - learning_rate |p| / |u| u
///
/// Source: You et al., "Large batch optimization for deep learning", ICLR 2020, algorithm 2.
/// Cost: 24 bytes read or written for each element in the first pass, 16 in the second.
struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 1e-2;

  /// Tensors without weight decay adapt too, which is NVLAMB's rule; else their trust ratio is 1.
  bool adapts_always = true;
};
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n);

/// v stands still as bf16 where a step changes it by less than 2^-9 of itself: it wants
/// beta2 <= 0.99.
void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n);

/// LARS:
///
///     ratio = trust |p| / (|g| + weight_decay |p| + epsilon)
///     b     = momentum b + ratio (g + weight_decay p)
///     p     = p - learning_rate b
///
/// Source: You et al., "Large batch training of convolutional networks", 2017, algorithm 1.
/// Cost: 8 bytes for each element in the first pass, 20 in the second.
struct LarsOptions {
  double learning_rate = 1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;
  double epsilon = 1e-8;
  bool adapts = true;  ///< Else the ratio is 1: biases and norms.
};
void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n);
void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n);

/// NovoGrad: one second moment for each tensor.
///
///     v = |g|^2 in the first step, else beta2 v + (1 - beta2) |g|^2
///     m = beta1 m + beta3 (g / (sqrt(v) + epsilon) + weight_decay p)
///     p = p - learning_rate m              beta3 = 1 - beta1 where it averages, else 1
///
/// Source: Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments", 2019,
/// algorithm 1.
/// Cost: 4 bytes for each element in the first pass, 20 in the second.
struct NovogradOptions {
  double learning_rate = 1e-2;
  double beta1 = 0.95;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool averages_gradients = false;
};

/// v   of the tensor, updated.
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              float* m, float* parameter, std::int64_t n);
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              Bf16* m, float* parameter, std::int64_t n);

}  // namespace trireme::kernels
