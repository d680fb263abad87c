#include "trireme/kernels/optimizer/sgd.h"

#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

/// The options as T, and which lines of the formula apply.
template <typename T>
struct Constants {
  explicit Constants(const SgdOptions& options)
      : weight_decay(static_cast<T>(options.weight_decay)),
        momentum(static_cast<T>(options.momentum)),
        undamped(static_cast<T>(1 - options.dampening)),
        minus_rate(static_cast<T>(-1 * options.learning_rate)),
        has_decay(options.weight_decay != 0),
        nesterov(options.nesterov) {}

  T weight_decay, momentum, undamped, minus_rate;
  bool has_decay, nesterov;
};

template <typename T>
TRIREME_INLINE_LOOP void plain_loop(const Constants<T>& c, const T* __restrict gradient,
                                    T* __restrict parameter, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = c.has_decay ? fma(c.weight_decay, parameter[i], gradient[i]) : gradient[i];
    parameter[i] = fma(c.minus_rate, g, parameter[i]);
  }
}

template <typename T>
TRIREME_INLINE_LOOP void momentum_loop(const Constants<T>& c, bool first_step,
                                       const T* __restrict gradient, T* __restrict buffer,
                                       T* __restrict parameter, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = c.has_decay ? fma(c.weight_decay, parameter[i], gradient[i]) : gradient[i];
    const T b = first_step ? g : fma(c.undamped, g, c.momentum * buffer[i]);
    buffer[i] = b;
    parameter[i] = fma(c.minus_rate, c.nesterov ? fma(c.momentum, b, g) : b, parameter[i]);
  }
}

template <typename T>
TRIREME_AVX2 void plain_avx2(const Constants<T>& c, const T* gradient, T* parameter,
                             std::int64_t n) {
  plain_loop(c, gradient, parameter, n);
}

template <typename T>
TRIREME_AVX2 void momentum_avx2(const Constants<T>& c, bool first_step, const T* gradient,
                                T* buffer, T* parameter, std::int64_t n) {
  momentum_loop(c, first_step, gradient, buffer, parameter, n);
}

template <typename T>
void any_sgd(const SgdOptions& options, bool first_step, const T* gradient, T* buffer, T* parameter,
             std::int64_t n) {
  const Constants<T> constants(options);
  if (options.momentum == 0) {
    (has_avx2() ? plain_avx2<T> : plain_loop<T>)(constants, gradient, parameter, n);
  } else {
    (has_avx2() ? momentum_avx2<T> : momentum_loop<T>)(constants, first_step, gradient, buffer,
                                                       parameter, n);
  }
}

}  // namespace

void sgd(const SgdOptions& options, bool first_step, const float* gradient, float* buffer,
         float* parameter, std::int64_t n) {
  any_sgd(options, first_step, gradient, buffer, parameter, n);
}

void sgd(const SgdOptions& options, bool first_step, const double* gradient, double* buffer,
         double* parameter, std::int64_t n) {
  any_sgd(options, first_step, gradient, buffer, parameter, n);
}

}  // namespace trireme::kernels
