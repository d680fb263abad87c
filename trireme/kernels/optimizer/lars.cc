#include "trireme/kernels/optimizer/lars.h"

#include <cmath>

#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/norm_blocks.h"

namespace trireme::kernels {
namespace {

double trust_of(const LarsOptions& options, double weight, double slope) {
  if (!options.adapts || !(weight > 0 && slope > 0)) return 1;
  return options.trust * weight / (slope + options.weight_decay * weight + options.epsilon);
}

template <typename State>
void update(const LarsOptions& options, double trust, const float* gradient, State* buffer,
            float* parameter, std::int64_t n, const Spread& spread) {
  const auto momentum = static_cast<float>(options.momentum);
  const auto ratio = static_cast<float>(trust);
  const auto weight_decay = static_cast<float>(options.weight_decay);
  const auto minus_rate = static_cast<float>(-options.learning_rate);
  internal::for_each_norm_block_back(n, spread, [&](std::int64_t begin, std::int64_t count) {
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
void any_lars(const LarsOptions& options, const float* gradient, State* buffer, float* parameter,
              std::int64_t n, const Spread& spread) {
  double trust = 1;
  if (options.adapts) {
    trust = trust_of(options, std::sqrt(square_norm(parameter, n, spread)),
                     std::sqrt(square_norm(gradient, n, spread)));
  }
  update(options, trust, gradient, buffer, parameter, n, spread);
}

}  // namespace

void lars(const LarsOptions& options, double weight, double slope, const float* gradient,
          float* buffer, float* parameter, std::int64_t n, const Spread& spread) {
  const double trust = trust_of(options, std::sqrt(weight), std::sqrt(slope));
  update(options, trust, gradient, buffer, parameter, n, spread);
}

void lars(const LarsOptions& options, const float* gradient, float* buffer, float* parameter,
          std::int64_t n, const Spread& spread) {
  any_lars(options, gradient, buffer, parameter, n, spread);
}

void lars(const LarsOptions& options, const float* gradient, Bf16* buffer, float* parameter,
          std::int64_t n, const Spread& spread) {
  any_lars(options, gradient, buffer, parameter, n, spread);
}

}  // namespace trireme::kernels
