#include "trireme/kernels/optimizer/adamw.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "trireme/kernels/optimizer/elements.h"
#include "trireme/kernels/optimizer/step_count.h"
#include "trireme/kernels/philox.h"

namespace trireme::kernels {
namespace {

template <typename T>
struct Terms {
  Terms(const AdamwOptions& options, std::int64_t step)
      : decay(static_cast<T>(1 - options.learning_rate * options.weight_decay)),
        beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        one_minus_beta1(static_cast<T>(1 - options.beta1)),
        one_minus_beta2(static_cast<T>(1 - options.beta2)),
        root_correction(
            static_cast<T>(std::sqrt(1 - std::pow(options.beta2, static_cast<double>(step))))),
        epsilon(static_cast<T>(options.epsilon)),
        minus_rate(static_cast<T>(
            -(options.learning_rate / (1 - std::pow(options.beta1, static_cast<double>(step)))))) {
    internal::check_step("AdamW", step);
  }

  TRIREME_INLINE_LOOP T next_m(T g, T m) const { return fma(one_minus_beta1, g, m * beta1); }

  TRIREME_INLINE_LOOP T next_v(T g, T v) const { return fma(one_minus_beta2 * g, g, v * beta2); }

  TRIREME_INLINE_LOOP T next_parameter(T m, T root, T p) const {
    const T d = root / root_correction + epsilon;
    return p * decay + minus_rate * m / d;
  }

  T decay;  ///< 1 without weight decay: p times 1 is p.
  T beta1, beta2, one_minus_beta1, one_minus_beta2, root_correction, epsilon, minus_rate;
};

template <typename T, typename State>
void one_pass(const Terms<T>& terms, const T* gradient, State* m, State* v, T* parameter,
              std::int64_t n) {
  internal::for_each_element(
      n,
      [terms](T g, State& m, State& v, T& p) TRIREME_ELEMENT {
        const T new_m = terms.next_m(g, to_f32(m)), new_v = terms.next_v(g, to_f32(v));
        internal::put(new_m, m);
        internal::put(new_v, v);
        p = terms.next_parameter(new_m, square_root(new_v), p);
      },
      gradient, m, v, parameter);
}

/// Roots of a chunk at a time, while its moments are in cache.
template <typename T>
void with_roots(const Terms<T>& terms, const T* gradient, T* m, T* v, T* parameter, std::int64_t n,
                SquareRoots<T> roots) {
  constexpr std::int64_t kChunk = 4096;
  T root[kChunk];
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, n - begin);
    internal::for_each_element(
        count,
        [terms](T g, T& m, T& v) TRIREME_ELEMENT {
          m = terms.next_m(g, m);
          v = terms.next_v(g, v);
        },
        gradient + begin, m + begin, v + begin);
    roots(v + begin, root, count);
    internal::for_each_element(
        count, [terms](T m, T root, T& p) TRIREME_ELEMENT { p = terms.next_parameter(m, root, p); },
        m + begin, root, parameter + begin);
  }
}

/// Which random bits elements take.
struct BitSource {
  std::uint64_t seed;
  std::int64_t first;  ///< Element of the tensor that is the first one here.
};

/// All in bf16, rounded by random bits that are drawn for a chunk at a time.
void with_random_bits(const Terms<float>& terms, const BitSource& source, const Bf16* gradient,
                      Bf16* m, Bf16* v, Bf16* parameter, std::int64_t n) {
  constexpr std::int64_t kChunk = 1024, kCounters = kChunk / 8;
  const auto lower = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  std::uint32_t words[4 * kCounters];
  std::uint16_t bits[kChunk];
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const auto chunk = static_cast<std::uint64_t>((source.first + begin) / kChunk);
    philox_row({lower(chunk), lower(chunk >> 32), 0},
               {lower(source.seed), lower(source.seed >> 32)}, kCounters, words);
    for (std::int64_t i = 0; i < kChunk / 2; ++i) {
      bits[2 * i] = static_cast<std::uint16_t>(words[i]);
      bits[2 * i + 1] = static_cast<std::uint16_t>(words[i] >> 16);
    }
    internal::for_each_element(
        std::min(kChunk, n - begin),
        [terms](Bf16 gradient, Bf16& m, Bf16& v, Bf16& p, std::uint16_t random) TRIREME_ELEMENT {
          const float g = to_f32(gradient);
          const float new_m = terms.next_m(g, to_f32(m)), new_v = terms.next_v(g, to_f32(v));
          m = to_bf16_at_random(new_m, std::rotr(random, 5));
          v = to_bf16_at_random(new_v, std::rotr(random, 10));
          p = to_bf16_at_random(terms.next_parameter(new_m, square_root(new_v), to_f32(p)), random);
        },
        gradient + begin, m + begin, v + begin, parameter + begin, bits);
  }
}

template <typename T>
void any_adamw(const Terms<T>& terms, const T* gradient, T* m, T* v, T* parameter, std::int64_t n,
               SquareRoots<T> roots) {
  if (roots) return with_roots(terms, gradient, m, v, parameter, n, roots);
  one_pass(terms, gradient, m, v, parameter, n);
}

}  // namespace

void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, float* exp_avg,
           float* exp_avg_sq, float* parameter, std::int64_t n, SquareRoots<float> roots,
           const Spread& spread) {
  const Terms<float> terms(options, step);
  internal::for_each_piece(n, spread, [&](std::int64_t i, std::int64_t count) {
    any_adamw(terms, gradient + i, exp_avg + i, exp_avg_sq + i, parameter + i, count, roots);
  });
}

void adamw(const AdamwOptions& options, std::int64_t step, const double* gradient, double* exp_avg,
           double* exp_avg_sq, double* parameter, std::int64_t n, SquareRoots<double> roots,
           const Spread& spread) {
  const Terms<double> terms(options, step);
  internal::for_each_piece(n, spread, [&](std::int64_t i, std::int64_t count) {
    any_adamw(terms, gradient + i, exp_avg + i, exp_avg_sq + i, parameter + i, count, roots);
  });
}

void adamw(const AdamwOptions& options, std::int64_t step, const float* gradient, Bf16* exp_avg,
           Bf16* exp_avg_sq, float* parameter, std::int64_t n, const Spread& spread) {
  const Terms<float> terms(options, step);
  internal::for_each_piece(n, spread, [&](std::int64_t i, std::int64_t count) {
    one_pass(terms, gradient + i, exp_avg + i, exp_avg_sq + i, parameter + i, count);
  });
}

void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, const Bf16* gradient,
           Bf16* exp_avg, Bf16* exp_avg_sq, Bf16* parameter, std::int64_t n, const Spread& spread) {
  const Terms<float> terms(options, step);
  internal::for_each_piece(n, spread, [&](std::int64_t i, std::int64_t count) {
    with_random_bits(terms, {seed, i}, gradient + i, exp_avg + i, exp_avg_sq + i, parameter + i,
                     count);
  });
}

}  // namespace trireme::kernels
