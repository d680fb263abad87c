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

internal::LambTerms terms_of(const LambOptions& options, std::int64_t step) {
  internal::check_step("LAMB", step);
  const auto power = static_cast<double>(step);
  return {static_cast<float>(options.beta1),
          static_cast<float>(options.beta2),
          static_cast<float>(1 - options.beta1),
          static_cast<float>(1 - options.beta2),
          static_cast<float>(1 / (1 - std::pow(options.beta1, power))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, power))),
          static_cast<float>(options.epsilon),
          static_cast<float>(options.weight_decay)};
}

template <typename State>
void moments(const internal::LambTerms& terms, const float* gradient, State* m, State* v,
             const float* parameter, std::int64_t n, std::span<LambSums> blocks,
             const Spread& spread) {
  internal::for_each_norm_block(
      n, spread, [&](std::int64_t block, std::int64_t begin, std::int64_t count) {
        blocks[block] = lamb_loops<State>().moments(terms, gradient + begin, m + begin, v + begin,
                                                    parameter + begin, count);
      });
}

template <typename State>
void update(const LambOptions& options, const internal::LambTerms& terms, const LambSums& tensor,
            const State* m, const State* v, float* parameter, std::int64_t n,
            const Spread& spread) {
  const bool adapts = options.adapts_always || options.weight_decay != 0;
  const double ratio =
      adapts ? ratio_of(std::sqrt(tensor.parameter), std::sqrt(tensor.update)) : 1.0;
  const auto minus_rate = static_cast<float>(-options.learning_rate * ratio);
  internal::for_each_norm_block_back(n, spread, [&](std::int64_t begin, std::int64_t count) {
    lamb_loops<State>().update(terms, minus_rate, m + begin, v + begin, parameter + begin, count);
  });
}

template <typename State>
void any_lamb(const LambOptions& options, std::int64_t step, const float* gradient, State* m,
              State* v, float* parameter, std::int64_t n, const Spread& spread) {
  const internal::LambTerms terms = terms_of(options, step);
  std::vector<LambSums> blocks(internal::count_norm_blocks(n));
  moments<State>(terms, gradient, m, v, parameter, n, blocks, spread);
  LambSums tensor;
  for (const LambSums& block : blocks) {
    tensor.parameter += block.parameter;
    tensor.update += block.update;
  }
  update<State>(options, terms, tensor, m, v, parameter, n, spread);
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

void lamb_moments(const LambOptions& options, std::int64_t step, const float* gradient, float* m,
                  float* v, const float* parameter, std::int64_t n, std::span<LambSums> blocks,
                  const Spread& spread) {
  moments(terms_of(options, step), gradient, m, v, parameter, n, blocks, spread);
}

void lamb_update(const LambOptions& options, std::int64_t step, const LambSums& tensor,
                 const float* m, const float* v, float* parameter, std::int64_t n,
                 const Spread& spread) {
  update(options, terms_of(options, step), tensor, m, v, parameter, n, spread);
}

}  // namespace trireme::kernels
