#include "trireme/kernels/optimizer/layerwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/base/error.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/layerwise_terms.h"

#define TRIREME_LOOPS "trireme/kernels/optimizer/layerwise_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels {
namespace {

const internal::LayerwiseLoops& loops() {
  if (has_avx512()) return avx512::kLayerwiseLoops;
  if (has_avx2()) return avx2::kLayerwiseLoops;
  return portable::kLayerwiseLoops;
}

/// Calls `body(begin, count)` for each norm block.
template <typename Body>
void for_each_block(std::int64_t n, const Body& body) {
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    body(begin, std::min(kNormBlock, n - begin));
  }
}

void check_step(std::int64_t step) {
  if (step >= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "optimizers count steps from 1, got " + std::to_string(step));
}

/// 1 where one of both is 0.
double ratio_of(double above, double below) { return above > 0 && below > 0 ? above / below : 1; }

}  // namespace

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n) {
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
    const internal::LambSums block = loops().lamb_moments(terms, gradient + begin, m + begin,
                                                          v + begin, parameter + begin, count);
    total.parameter += block.parameter;
    total.update += block.update;
  });
  const bool adapts = options.adapts_always || options.weight_decay != 0;
  const double ratio = adapts ? ratio_of(std::sqrt(total.parameter), std::sqrt(total.update)) : 1.0;
  loops().lamb_update(terms, static_cast<float>(-options.learning_rate * ratio), m, v, parameter,
                      n);
}

void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n) {
  double ratio = 1;
  if (options.adapts) {
    const double weight = std::sqrt(square_norm(parameter, n));
    const double slope = std::sqrt(square_norm(gradient, n));
    if (weight > 0 && slope > 0) {
      ratio = options.trust * weight / (slope + options.weight_decay * weight + options.epsilon);
    }
  }
  loops().lars(
      {static_cast<float>(options.momentum), static_cast<float>(ratio),
       static_cast<float>(options.weight_decay), static_cast<float>(-options.learning_rate)},
      gradient, buffer, parameter, n);
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              float* m, float* parameter, std::int64_t n) {
  check_step(step);
  const double square = square_norm(gradient, n);
  v = step == 1 ? square : options.beta2 * v + (1 - options.beta2) * square;
  const double beta3 = options.averages_gradients ? 1 - options.beta1 : 1;
  loops().novograd({static_cast<float>(options.beta1),
                    static_cast<float>(beta3 / (std::sqrt(v) + options.epsilon)),
                    static_cast<float>(beta3 * options.weight_decay),
                    static_cast<float>(-options.learning_rate)},
                   gradient, m, parameter, n);
}

}  // namespace trireme::kernels
