#pragma once

#include <cstdint>

#include "trireme/kernels/half.h"
#include "trireme/kernels/optimizer/lamb.h"

namespace trireme::kernels::internal {

/// Constants of a step, rounded to f32.
struct LambTerms {
  float beta1, beta2, rest1, rest2;  ///< rest = 1 - beta
  float factor;                      ///< 1 / (1 - beta1^step)
  float inverse_root;                ///< 1 / sqrt(1 - beta2^step)
  float epsilon, weight_decay;
};

/// Over at most a norm block.
template <typename State>
struct LambLoops {
  LambSums (*moments)(const LambTerms& terms, const float* gradient, State* m, State* v,
                      const float* parameter, std::int64_t n);
  void (*update)(const LambTerms& terms, float minus_rate, const State* m, const State* v,
                 float* parameter, std::int64_t n);
};

}  // namespace trireme::kernels::internal
