// The passes of LAMB (lamb.h) for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include <type_traits>

#include "trireme/kernels/lanes.h"
#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/lamb_terms.h"

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {
namespace {

using internal::LambLoops;
using internal::LambTerms;

inline Lanes lamb_step(const LambTerms& terms, const Lanes& m, const Lanes& v, const Lanes& p) {
  const Lanes deviation = root(v) * all(terms.inverse_root) + all(terms.epsilon);
  return m * all(terms.factor) / deviation + all(terms.weight_decay) * p;
}

/// What is read again of a moment that is kept as a State.
template <typename State>
inline Lanes kept(const Lanes& moment) {
  if constexpr (std::is_same_v<State, Bf16>) return rounded_to_bf16(moment);
  return moment;
}

template <typename State>
LambSums lamb_moments(const LambTerms& shared, const float* gradient, State* m, State* v,
                      const float* parameter, std::int64_t n) {
  const LambTerms terms = shared;  // what is stored cannot change it
  DoubleLanes parameters = no_sums(), updates = no_sums();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    internal::ask_for_line(gradient + i, m + i, v + i, parameter + i);
    const Lanes g = load_first(gradient + i, left), p = load_first(parameter + i, left);
    const Lanes new_m =
        kept<State>(all(terms.beta1) * load_first(m + i, left) + all(terms.rest1) * g);
    const Lanes new_v =
        kept<State>(all(terms.beta2) * load_first(v + i, left) + all(terms.rest2) * g * g);
    store_first(new_m, left, m + i);
    store_first(new_v, left, v + i);
    add_squares(p, parameters);
    Lanes u = lamb_step(terms, new_m, new_v, p);
    if (left < kLanes) u = keep((1U << left) - 1, u);  // 0 / 0 where epsilon is 0
    add_squares(u, updates);
  }
  return {sum(parameters), sum(updates)};
}

template <typename State>
void lamb_update(const LambTerms& shared, float minus_rate, const State* m, const State* v,
                 float* parameter, std::int64_t n) {
  const LambTerms terms = shared;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    internal::ask_for_line(m + i, v + i, parameter + i);
    const Lanes p = load_first(parameter + i, left);
    const Lanes u = lamb_step(terms, load_first(m + i, left), load_first(v + i, left), p);
    store_first(p + all(minus_rate) * u, left, parameter + i);
  }
}

}  // namespace

template <typename State>
inline constexpr LambLoops<State> kLambLoops = {lamb_moments<State>, lamb_update<State>};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
