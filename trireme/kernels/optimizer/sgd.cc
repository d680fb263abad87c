#include "trireme/kernels/optimizer/sgd.h"

#include "trireme/kernels/optimizer/elements.h"

namespace trireme::kernels {
namespace {

/// The options as T, and which lines of the formula apply.
template <typename T>
struct Terms {
  explicit Terms(const SgdOptions& options)
      : weight_decay(static_cast<T>(options.weight_decay)),
        momentum(static_cast<T>(options.momentum)),
        undamped(static_cast<T>(1 - options.dampening)),
        minus_rate(static_cast<T>(-1 * options.learning_rate)),
        has_decay(options.weight_decay != 0),
        nesterov(options.nesterov) {}

  TRIREME_INLINE_LOOP T decayed(T g, T p) const { return has_decay ? fma(weight_decay, p, g) : g; }

  T weight_decay, momentum, undamped, minus_rate;
  bool has_decay, nesterov;
};

template <typename T, typename State>
void any_sgd(const SgdOptions& options, bool first_step, const T* gradient, State* buffer,
             T* parameter, std::int64_t n, const Spread& spread) {
  if (n > internal::kSpreadPiece) {
    internal::for_each_piece(n, spread, [&](std::int64_t begin, std::int64_t count) {
      any_sgd(options, first_step, gradient + begin, buffer ? buffer + begin : nullptr,
              parameter + begin, count, spread);
    });
    return;
  }
  const Terms<T> terms(options);
  if (options.momentum == 0) {
    internal::for_each_element(
        n,
        [terms](T g, T& p) TRIREME_ELEMENT { p = fma(terms.minus_rate, terms.decayed(g, p), p); },
        gradient, parameter);
    return;
  }
  internal::for_each_element(
      n,
      [terms, first_step](T g, State& buf, T& p) TRIREME_ELEMENT {
        const T slope = terms.decayed(g, p);
        const T b = first_step ? slope : fma(terms.undamped, slope, terms.momentum * to_f32(buf));
        internal::put(b, buf);
        p = fma(terms.minus_rate, terms.nesterov ? fma(terms.momentum, b, slope) : b, p);
      },
      gradient, buffer, parameter);
}

}  // namespace

void sgd(const SgdOptions& options, bool first_step, const float* gradient, float* buffer,
         float* parameter, std::int64_t n, const Spread& spread) {
  any_sgd(options, first_step, gradient, buffer, parameter, n, spread);
}

void sgd(const SgdOptions& options, bool first_step, const double* gradient, double* buffer,
         double* parameter, std::int64_t n, const Spread& spread) {
  any_sgd(options, first_step, gradient, buffer, parameter, n, spread);
}

void sgd(const SgdOptions& options, bool first_step, const float* gradient, Bf16* buffer,
         float* parameter, std::int64_t n, const Spread& spread) {
  any_sgd(options, first_step, gradient, buffer, parameter, n, spread);
}

}  // namespace trireme::kernels
