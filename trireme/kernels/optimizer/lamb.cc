#include "trireme/kernels/optimizer/lamb.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/kernels/isa.h"
#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/lamb_terms.h"
#include "trireme/kernels/optimizer/norm_blocks.h"
#include "trireme/kernels/optimizer/step_count.h"

#define TRIREME_LOOPS "trireme/kernels/optimizer/lamb_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels {
namespace {

template <typename State>
const internal::LambLoops<State>& lamb_loops() {
  return of_isa(portable::kLambLoops<State>, avx2::kLambLoops<State>, avx512::kLambLoops<State>);
}

/// 1 where one of both is 0.
double ratio_of(double above, double below) { return above > 0 && below > 0 ? above / below : 1; }

template <typename State>
void any_lamb(const LambOptions& options, std::int64_t step, const float* gradient, State* m,
              State* v, float* parameter, std::int64_t n, const Spread& spread) {
  internal::check_step("LAMB", step);
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
  std::vector<internal::LambSums> sums(internal::count_norm_blocks(n));
  internal::for_each_norm_block(
      n, spread, [&](std::int64_t block, std::int64_t begin, std::int64_t count) {
        sums[block] = lamb_loops<State>().moments(terms, gradient + begin, m + begin, v + begin,
                                                  parameter + begin, count);
      });
  internal::LambSums total{0, 0};
  for (const internal::LambSums& block : sums) {
    total.parameter += block.parameter;
    total.update += block.update;
  }
  const bool adapts = options.adapts_always || options.weight_decay != 0;
  const double ratio = adapts ? ratio_of(std::sqrt(total.parameter), std::sqrt(total.update)) : 1.0;
  const auto minus_rate = static_cast<float>(-options.learning_rate * ratio);
  internal::for_each_norm_block_back(n, spread, [&](std::int64_t begin, std::int64_t count) {
    lamb_loops<State>().update(terms, minus_rate, m + begin, v + begin, parameter + begin, count);
  });
}

}  // namespace

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, float* m, float* v,
          float* parameter, std::int64_t n, const Spread& spread) {
  any_lamb(options, step, gradient, m, v, parameter, n, spread);
}

void lamb(const LambOptions& options, std::int64_t step, const float* gradient, Bf16* m, Bf16* v,
          float* parameter, std::int64_t n, const Spread& spread) {
  any_lamb(options, step, gradient, m, v, parameter, n, spread);
}

}  // namespace trireme::kernels
