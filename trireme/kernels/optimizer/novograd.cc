#include "trireme/kernels/optimizer/novograd.h"

#include <cmath>

#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/norm_blocks.h"
#include "trireme/kernels/optimizer/step_count.h"

namespace trireme::kernels {
namespace {

template <typename State>
void any_novograd(const NovogradOptions& options, std::int64_t step, double square,
                  const float* gradient, double& v, State* m, float* parameter, std::int64_t n,
                  const Spread& spread) {
  internal::check_step("NovoGrad", step);
  v = step == 1 ? square : options.beta2 * v + (1 - options.beta2) * square;
  const double beta3 = options.averages_gradients ? 1 - options.beta1 : 1;
  const auto beta1 = static_cast<float>(options.beta1);
  const auto factor = static_cast<float>(beta3 / (std::sqrt(v) + options.epsilon));
  const auto decay = static_cast<float>(beta3 * options.weight_decay);
  const auto minus_rate = static_cast<float>(-options.learning_rate);
  internal::for_each_norm_block_back(n, spread, [&](std::int64_t begin, std::int64_t count) {
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

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              float* m, float* parameter, std::int64_t n, const Spread& spread) {
  any_novograd(options, step, square_norm(gradient, n, spread), gradient, v, m, parameter, n,
               spread);
}

void novograd(const NovogradOptions& options, std::int64_t step, const float* gradient, double& v,
              Bf16* m, float* parameter, std::int64_t n, const Spread& spread) {
  any_novograd(options, step, square_norm(gradient, n, spread), gradient, v, m, parameter, n,
               spread);
}

void novograd(const NovogradOptions& options, std::int64_t step, double square,
              const float* gradient, double& v, float* m, float* parameter, std::int64_t n,
              const Spread& spread) {
  any_novograd(options, step, square, gradient, v, m, parameter, n, spread);
}

}  // namespace trireme::kernels
