#pragma once

#include <cstdint>

namespace trireme::kernels::internal {

/// Constants of a step, rounded to f32.
struct LambTerms {
  float beta1, beta2, rest1, rest2;  ///< rest = 1 - beta
  float factor;                      ///< 1 / (1 - beta1^step)
  float inverse_root;                ///< 1 / sqrt(1 - beta2^step)
  float epsilon, weight_decay;
};

/// Sums of squares of p and u over a norm block.
struct LambSums {
  double parameter, update;
};

struct LarsTerms {
  float momentum, ratio, weight_decay, minus_rate;
};

struct NovogradTerms {
  float beta1, factor, decay, minus_rate;  ///< m = beta1 m + factor g + decay p
};

/// Over at most a norm block.
struct LayerwiseLoops {
  LambSums (*lamb_moments)(const LambTerms& terms, const float* gradient, float* m, float* v,
                           const float* parameter, std::int64_t n);
  void (*lamb_update)(const LambTerms& terms, float minus_rate, const float* m, const float* v,
                      float* parameter, std::int64_t n);
  void (*lars)(const LarsTerms& terms, const float* gradient, float* buffer, float* parameter,
               std::int64_t n);
  void (*novograd)(const NovogradTerms& terms, const float* gradient, float* m, float* parameter,
                   std::int64_t n);
};

}  // namespace trireme::kernels::internal
