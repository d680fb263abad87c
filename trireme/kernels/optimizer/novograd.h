#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {

struct NovogradOptions {
  double learning_rate = 1e-2;
  double beta1 = 0.95;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool averages_gradients = false;
};

/// One step of NovoGrad for a tensor, which has one second moment:
///
///     v = |g|^2 in the first step, else beta2 v + (1 - beta2) |g|^2
///     m = beta1 m + beta3 (g / (sqrt(v) + epsilon) + weight_decay p)
///     p = p - learning_rate m              beta3 = 1 - beta1 where it averages, else 1
///
/// |g|^2 is `square_norm` (norm/norm.h). Elements: each operation rounds to f32, constants are
/// computed in f64 and rounded once.
///
/// step       counts from 1, else kInvalidArgument.
/// gradient   [n], left as it is.
/// v          of the tensor, updated.
/// m          [n], updated; zeros before the first step. As bf16 it is rounded to nearest, ties to
///            even; the parameter is changed by it unrounded.
/// parameter  [n], updated. No arrays overlap.
/// spread     threads share the elements; they change nothing.
/// Cost       4 bytes read for each element for the norm; 20 read or written for the update.
/// Source     Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments", 2019,
///            algorithm 1.
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              float* m, float* parameter, std::int64_t n, const Spread& spread = on_caller);
void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              Bf16* m, float* parameter, std::int64_t n, const Spread& spread = on_caller);

/// The same by a norm that is known, for a part of the tensor; each part has a v, all of one value.
///
/// square   |g|^2 of the whole tensor.
void novograd(const NovogradOptions& options, std::int64_t step, double square,
              const float* gradient, double& v, float* m, float* parameter, std::int64_t n,
              const Spread& spread = on_caller);

}  // namespace trireme::kernels
