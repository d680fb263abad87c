#include "trireme/kernels/optimizer/layerwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/base/error.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/lamb_terms.h"

#define TRIREME_LOOPS "trireme/kernels/optimizer/lamb_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels {
namespace {

template <typename State>
const internal::LambLoops<State>& lamb_loops() {
  return of_isa(portable::kLambLoops<State>, avx2::kLambLoops<State>, avx512::kLambLoops<State>);
}

/// Calls `body(begin, count)` for each norm block.
template <typename Body>
void for_each_block(std::int64_t n, const Body& body) {
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    body(begin, std::min(kNormBlock, n - begin));
  }
}

/// The same from the last to the first: what a pass has read last is still in cache.
template <typename Body>
void for_each_block_back(std::int64_t n, const Body& body) {
  for (std::int64_t end = n; end > 0;) {
    const std::int64_t begin = (end - 1) / kNormBlock * kNormBlock;
    body(begin, end - begin);
    end = begin;
  }
}

void check_step(std::int64_t step) {
  if (step >= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "optimizers count steps from 1, got " + std::to_string(step));
}

/// 1 where one of both is 0.
double ratio_of(double above, double below) { return above > 0 && below > 0 ? above / below : 1; }

template <typename State>
void any_lamb(const LambOptions& options, std::int64_t step, const float* gradient, State* m,
              State* v, float* parameter, std::int64_t n) {
  check_step(step);
  const auto power = static_cast<double>(step);
  const internal::LambTerms terms{
      static_cast<float>(options.beta1),
      static_cast<float>(options.beta2),
      static_cast<float>(1 - options.beta1),
      static_cast<float>(1 - options.beta2),
      static_cast<float>(1 / (1 - std::pow(options.beta1, power))),
      static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, power))),
      static_cast<float>(options.epsilon),
      static_cast<float>(options.weight_decay)};
  internal::LambSums total{0, 0};
  for_each_block(n, [&](std::int64_t begin, std::int64_t count) {
    const internal::LambSums block = lamb_loops<State>().moments(
        terms, gradient + begin, m + begin, v + begin, parameter + begin, count);
    total.parameter += block.parameter;
    total.update += block.update;
  });
  const bool adapts = options.adapts_always || options.weight_decay != 0;
  const double ratio = adapts ? ratio_of(std::sqrt(total.parameter), std::sqrt(total.update)) : 1.0;
  const auto minus_rate = static_cast<float>(-options.learning_rate * ratio);
  for_each_block_back(n, [&](std::int64_t begin, std::int64_t count) {
    lamb_loops<State>().update(terms, minus_rate, m + begin, v + begin, parameter + begin, count);
  });
}

template <typename State>
void any_lars(const LarsOptions& options, const float* gradient, State* buffer, float* parameter,
              std::int64_t n) {
  double trust = 1;
  if (options.adapts) {
    const double weight = std::sqrt(square_norm(parameter, n));
    const double slope = std::sqrt(square_norm(gradient, n));
    if (weight > 0 && slope > 0) {
      trust = options.trust * weight / (slope + options.weight_decay * weight + options.epsilon);
    }
  }
  const auto momentum = static_cast<float>(options.momentum);
  const auto ratio = static_cast<float>(trust);
  const auto weight_decay = static_cast<float>(options.weight_decay);
  const auto minus_rate = static_cast<float>(-options.learning_rate);
  for_each_block_back(n, [&](std::int64_t begin, std::int64_t count) {
    internal::for_each_element(
        count,
        [=](float g, State& buf, float& p) TRIREME_ELEMENT {
          const float b = momentum * to_f32(buf) + ratio * (g + weight_decay * p);
          internal::put(b, buf);
          p = p + minus_rate * b;
        },
        gradient + begin, buffer + begin, parameter + begin);
  });
}

template <typename State>
void any_novograd(const NovogradOptions& options, std::int64_t step, const float* gradient,
                  double& v, State* m, float* parameter, std::int64_t n) {
  check_step(step);
  const double square = square_norm(gradient, n);
  v = step == 1 ? square : options.beta2 * v + (1 - options.beta2) * square;
  const double beta3 = options.averages_gradients ? 1 - options.beta1 : 1;
  const auto beta1 = static_cast<float>(options.beta1);
  const auto factor = static_cast<float>(beta3 / (std::sqrt(v) + options.epsilon));
  const auto decay = static_cast<float>(beta3 * options.weight_decay);
  const auto minus_rate = static_cast<float>(-options.learning_rate);
  for_each_block_back(n, [&](std::int64_t begin, std::int64_t count) {
    internal::for_each_element(
        count,
        [=](float g, State& m, float& p) TRIREME_ELEMENT {
          const float new_m = beta1 * to_f32(m) + (factor * g + decay * p);
          internal::put(new_m, m);
          p = p + minus_rate * new_m;
        },
        gradient + begin, m + begin, parameter + begin);
  });
}

}  // namespace

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n) {
  any_lamb(options, step, gradient, m, v, parameter, n);
}

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n) {
  any_lamb(options, step, gradient, m, v, parameter, n);
}

void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n) {
  any_lars(options, gradient, buffer, parameter, n);
}

void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n) {
  any_lars(options, gradient, buffer, parameter, n);
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              float* m, float* parameter, std::int64_t n) {
  any_novograd(options, step, gradient, v, m, parameter, n);
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              Bf16* m, float* parameter, std::int64_t n) {
  any_novograd(options, step, gradient, v, m, parameter, n);
}

}  // namespace trireme::kernels
