#include "trireme/kernels/optimizer/adamw.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "trireme/base/error.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels {
namespace {

/// Elements whose moments are updated before their roots are taken; they stay in cache.
constexpr std::int64_t kChunk = 4096;

template <typename T>
struct Constants {
  Constants(const AdamwOptions& options, std::int64_t step)
      : decay(static_cast<T>(1 - options.learning_rate * options.weight_decay)),
        beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        one_minus_beta1(static_cast<T>(1 - options.beta1)),
        one_minus_beta2(static_cast<T>(1 - options.beta2)),
        root_correction(
            static_cast<T>(std::sqrt(1 - std::pow(options.beta2, static_cast<double>(step))))),
        epsilon(static_cast<T>(options.epsilon)),
        minus_rate(static_cast<T>(
            -(options.learning_rate / (1 - std::pow(options.beta1, static_cast<double>(step)))))),
        has_decay(options.weight_decay != 0) {}

  T decay, beta1, beta2, one_minus_beta1, one_minus_beta2, root_correction, epsilon, minus_rate;
  bool has_decay;
};

template <typename T>
TRIREME_INLINE_LOOP void moments_loop(const Constants<T>& c, const T* __restrict gradient,
                                      T* __restrict m, T* __restrict v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i];
    m[i] = fma(c.one_minus_beta1, g, m[i] * c.beta1);
    v[i] = fma(c.one_minus_beta2 * g, g, v[i] * c.beta2);
  }
}

template <typename T>
TRIREME_INLINE_LOOP void roots_loop(const T* __restrict x, T* __restrict root, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) root[i] = square_root(x[i]);
}

template <typename T>
TRIREME_INLINE_LOOP void parameter_loop(const Constants<T>& c, const T* __restrict m,
                                        const T* __restrict root, T* __restrict parameter,
                                        std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T p = c.has_decay ? parameter[i] * c.decay : parameter[i];
    const T d = root[i] / c.root_correction + c.epsilon;
    parameter[i] = p + c.minus_rate * m[i] / d;
  }
}

template <typename T>
TRIREME_AVX2 void moments_avx2(const Constants<T>& c, const T* gradient, T* m, T* v,
                               std::int64_t n) {
  moments_loop(c, gradient, m, v, n);
}

template <typename T>
TRIREME_AVX2 void roots_avx2(const T* x, T* root, std::int64_t n) {
  roots_loop(x, root, n);
}

template <typename T>
TRIREME_AVX2 void parameter_avx2(const Constants<T>& c, const T* m, const T* root, T* parameter,
                                 std::int64_t n) {
  parameter_loop(c, m, root, parameter, n);
}

template <typename T>
void any_adamw(const AdamwOptions& options, std::int64_t step, const T* gradient, T* m, T* v,
               T* parameter, std::int64_t n, SquareRoots<T> roots) {
  if (step < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "AdamW counts steps from 1, got " + std::to_string(step));
  }
  const Constants<T> constants(options, step);
  const bool is_fast = has_avx2();
  if (!roots) roots = is_fast ? roots_avx2<T> : roots_loop<T>;
  T root[kChunk];
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, n - begin);
    (is_fast ? moments_avx2<T> : moments_loop<T>)(constants, gradient + begin, m + begin, v + begin,
                                                  count);
    roots(v + begin, root, count);
    (is_fast ? parameter_avx2<T> : parameter_loop<T>)(constants, m + begin, root, parameter + begin,
                                                      count);
  }
}

}  // namespace

void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, float* exp_avg,
           float* exp_avg_sq, float* parameter, std::int64_t n, SquareRoots<float> roots) {
  any_adamw(options, step, gradient, exp_avg, exp_avg_sq, parameter, n, roots);
}

void adamw(const AdamwOptions& options, std::int64_t step, const double* gradient, double* exp_avg,
           double* exp_avg_sq, double* parameter, std::int64_t n, SquareRoots<double> roots) {
  any_adamw(options, step, gradient, exp_avg, exp_avg_sq, parameter, n, roots);
}

}  // namespace trireme::kernels
