#pragma once

// The passes of sgd and adamw (optimizer.h). Formulas are those of kernels/optimizer/.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "trireme/base/random.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/sgd.h"
#include "trireme/kernels/optimizer/state.h"
#include "trireme/kernels/optimizer/step_count.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::cuda::internal {

using kernels::internal::check_step;
using kernels::internal::put;

// ---- SGD

template <typename T, typename State>
struct SgdStep {
  T weight_decay, momentum, undamped, minus_rate;
  bool has_decay, has_momentum, is_nesterov, is_first;
  const T* gradient;
  State* buffer;
  T* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const T p = parameter[i];
    T g = has_decay ? fma(weight_decay, p, gradient[i]) : gradient[i];
    if (has_momentum) {
      const T b = is_first ? g : fma(undamped, g, momentum * to_f32(buffer[i]));
      put(b, buffer[i]);
      g = is_nesterov ? fma(momentum, b, g) : b;
    }
    parameter[i] = fma(minus_rate, g, p);
  }
};

template <typename T, typename State, typename Each>
void sgd_passes(const SgdOptions& options, bool first_step, const T* gradient, State* buffer,
                T* parameter, std::int64_t n, const Each& each) {
  each(n, SgdStep<T, State>{.weight_decay = static_cast<T>(options.weight_decay),
                            .momentum = static_cast<T>(options.momentum),
                            .undamped = static_cast<T>(1 - options.dampening),
                            .minus_rate = static_cast<T>(-1 * options.learning_rate),
                            .has_decay = options.weight_decay != 0,
                            .has_momentum = options.momentum != 0,
                            .is_nesterov = options.nesterov,
                            .is_first = first_step,
                            .gradient = gradient,
                            .buffer = buffer,
                            .parameter = parameter});
}

// ---- AdamW

template <typename T>
struct AdamwTerms {
  AdamwTerms(const AdamwOptions& options, std::int64_t step)
      : decay(static_cast<T>(1 - options.learning_rate * options.weight_decay)),
        beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        rest1(static_cast<T>(1 - options.beta1)),
        rest2(static_cast<T>(1 - options.beta2)),
        epsilon(static_cast<T>(options.epsilon)) {
    check_step("AdamW", step);
    const auto power = static_cast<double>(step);
    root_correction = static_cast<T>(std::sqrt(1 - std::pow(options.beta2, power)));
    minus_rate = static_cast<T>(-(options.learning_rate / (1 - std::pow(options.beta1, power))));
  }

  TRIREME_HOST_DEVICE T next_m(T g, T m) const { return fma(rest1, g, m * beta1); }
  TRIREME_HOST_DEVICE T next_v(T g, T v) const { return fma(rest2 * g, g, v * beta2); }
  TRIREME_HOST_DEVICE T next_parameter(T m, T v, T p) const {
    return p * decay + minus_rate * m / (square_root(v) / root_correction + epsilon);
  }

  T decay;                                ///< 1 without weight decay: p times 1 is p.
  T beta1, beta2, rest1, rest2, epsilon;  ///< rest = 1 - beta
  T root_correction, minus_rate;
};

template <typename T, typename State>
struct AdamwStep {
  AdamwTerms<T> terms;
  const T* gradient;
  State* m;
  State* v;
  T* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const T g = gradient[i];
    const T new_m = terms.next_m(g, to_f32(m[i])), new_v = terms.next_v(g, to_f32(v[i]));
    put(new_m, m[i]);
    put(new_v, v[i]);
    parameter[i] = terms.next_parameter(new_m, new_v, parameter[i]);
  }
};

template <typename T, typename State, typename Each>
void adamw_passes(const AdamwOptions& options, std::int64_t step, const T* gradient, State* m,
                  State* v, T* parameter, std::int64_t n, const Each& each) {
  each(n, AdamwStep<T, State>{AdamwTerms<T>(options, step), gradient, m, v, parameter});
}

/// All in bf16, rounded at random. The four words of a counter are bits for eight elements: two
/// neighbours in each quarter of a chunk (optimizer/adamw.h).
struct AdamwRandomStep {
  static constexpr std::int64_t kChunk = 1024, kCounters = kChunk / 8;

  AdamwTerms<float> terms;
  std::array<std::uint32_t, 2> key;
  const Bf16* gradient;
  Bf16* m;
  Bf16* v;
  Bf16* parameter;
  std::int64_t n;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [chunk, counter] = divide(i, kCounters);
    const auto words =
        philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(chunk),
                static_cast<std::uint32_t>(chunk >> 32), 0},
               key);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const std::int64_t even = chunk * kChunk + quarter * (kChunk / 4) + 2 * counter;
      if (even < n) step(even, static_cast<std::uint16_t>(words[quarter]));
      if (even + 1 < n) step(even + 1, static_cast<std::uint16_t>(words[quarter] >> 16));
    }
  }

  TRIREME_HOST_DEVICE void step(std::int64_t i, std::uint16_t random) const {
    const float g = to_f32(gradient[i]);
    const float new_m = terms.next_m(g, to_f32(m[i])), new_v = terms.next_v(g, to_f32(v[i]));
    m[i] = to_bf16_at_random(new_m, std::rotr(random, 5));
    v[i] = to_bf16_at_random(new_v, std::rotr(random, 10));
    parameter[i] =
        to_bf16_at_random(terms.next_parameter(new_m, new_v, to_f32(parameter[i])), random);
  }
};

template <typename Each>
void adamw_passes(const AdamwOptions& options, std::int64_t step, std::uint64_t seed,
                  const Bf16* gradient, Bf16* m, Bf16* v, Bf16* parameter, std::int64_t n,
                  const Each& each) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  each(count_parts(n, AdamwRandomStep::kChunk) * AdamwRandomStep::kCounters,
       AdamwRandomStep{AdamwTerms<float>(options, step), key, gradient, m, v, parameter, n});
}

}  // namespace trireme::kernels::cuda::internal
