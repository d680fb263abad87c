// The passes of layerwise.h for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include "trireme/kernels/lanes.h"
#include "trireme/kernels/optimizer/layerwise_terms.h"

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {
namespace {

using internal::LambSums;
using internal::LambTerms;
using internal::LarsTerms;
using internal::LayerwiseLoops;
using internal::NovogradTerms;

inline Lanes lamb_step(const LambTerms& terms, const Lanes& m, const Lanes& v, const Lanes& p) {
  const Lanes deviation = root(v) * all(terms.inverse_root) + all(terms.epsilon);
  return m * all(terms.factor) / deviation + all(terms.weight_decay) * p;
}

LambSums lamb_moments(const LambTerms& terms, const float* gradient, float* m, float* v,
                      const float* parameter, std::int64_t n) {
  DoubleLanes parameters = no_sums(), updates = no_sums();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes g = load_first(gradient + i, left), p = load_first(parameter + i, left);
    const Lanes new_m = all(terms.beta1) * load_first(m + i, left) + all(terms.rest1) * g;
    const Lanes new_v = all(terms.beta2) * load_first(v + i, left) + all(terms.rest2) * g * g;
    store_first(new_m, left, m + i);
    store_first(new_v, left, v + i);
    add_squares(p, parameters);
    Lanes u = lamb_step(terms, new_m, new_v, p);
    if (left < kLanes) u = keep((1U << left) - 1, u);  // 0 / 0 where epsilon is 0
    add_squares(u, updates);
  }
  return {sum(parameters), sum(updates)};
}

void lamb_update(const LambTerms& terms, float minus_rate, const float* m, const float* v,
                 float* parameter, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes p = load_first(parameter + i, left);
    const Lanes u = lamb_step(terms, load_first(m + i, left), load_first(v + i, left), p);
    store_first(p + all(minus_rate) * u, left, parameter + i);
  }
}

void lars(const LarsTerms& terms, const float* gradient, float* buffer, float* parameter,
          std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes p = load_first(parameter + i, left);
    const Lanes g = load_first(gradient + i, left) + all(terms.weight_decay) * p;
    const Lanes b = all(terms.momentum) * load_first(buffer + i, left) + all(terms.ratio) * g;
    store_first(b, left, buffer + i);
    store_first(p + all(terms.minus_rate) * b, left, parameter + i);
  }
}

void novograd(const NovogradTerms& terms, const float* gradient, float* m, float* parameter,
              std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes p = load_first(parameter + i, left);
    const Lanes new_m = all(terms.beta1) * load_first(m + i, left) +
                        (all(terms.factor) * load_first(gradient + i, left) + all(terms.decay) * p);
    store_first(new_m, left, m + i);
    store_first(p + all(terms.minus_rate) * new_m, left, parameter + i);
  }
}

}  // namespace

inline constexpr LayerwiseLoops kLayerwiseLoops = {lamb_moments, lamb_update, lars, novograd};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
