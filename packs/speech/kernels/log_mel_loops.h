// Log-mel features of 16 frames, one in each place of a vector, for one set of instructions. Compiled by each_isa.h.
//
//     frames -> x[n][16]                  windowed, transposed
//     x as z[n / 2][re, im][16]           even samples are real parts, odd ones imaginary parts
//     z -> Z                              passes of Stockham's transform (fourier.h), from one buffer to the other
//     Z -> power[n / 2 + 1][16]           the spectrum of x from Z[k] and Z[n / 2 - k], and its power
//     power -> out[16][mels]              filters, logarithm

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "packs/speech/kernels/fourier.h"
#include "packs/speech/kernels/log_mel_block.h"
#include "trireme/kernels/lanes.h"

namespace trireme::speech::TRIREME_ISA_NAMESPACE {

using namespace kernels::TRIREME_ISA_NAMESPACE;  // lanes.h

namespace {

using internal::FourierPass;
using internal::LogMelBlock;
using internal::RealFourier;

#define TRIREME_INLINE inline __attribute__((always_inline))

constexpr std::int64_t kPair = 2 * kLanes;  // floats from one complex number to the next

struct Complex {
  Part re, im;
};

TRIREME_INLINE Part load_part(const float* x) {
  Part part;
  std::memcpy(&part, x, sizeof part);
  return part;
}

TRIREME_INLINE void store_part(const Part& part, float* x) { std::memcpy(x, &part, sizeof part); }

TRIREME_INLINE Complex load_complex(const float* x) {
  return {load_part(x), load_part(x + kLanes)};
}

TRIREME_INLINE void store_complex(const Complex& a, float* x) {
  store_part(a.re, x);
  store_part(a.im, x + kLanes);
}

TRIREME_INLINE Complex operator+(const Complex& a, const Complex& b) {
  return {a.re + b.re, a.im + b.im};
}
TRIREME_INLINE Complex operator-(const Complex& a, const Complex& b) {
  return {a.re - b.re, a.im - b.im};
}

/// a times w[0] + i w[1].
TRIREME_INLINE Complex times(const Complex& a, const float* w) {
  return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}

/// a + i b, a - i b.
TRIREME_INLINE Complex plus_i(const Complex& a, const Complex& b) {
  return {a.re - b.im, a.im + b.re};
}
TRIREME_INLINE Complex minus_i(const Complex& a, const Complex& b) {
  return {a.re + b.im, a.im - b.re};
}

/// Calls `butterfly(from, to, twiddles)` for each p, q and part of a vector.
template <typename Butterfly>
TRIREME_INLINE void each_butterfly(const FourierPass& pass, const float* x, float* y,
                                   Butterfly butterfly) {
  const std::int64_t m = pass.length / pass.radix;
  for (std::int64_t p = 0; p < m; ++p) {
    const float* w = pass.twiddles.data() + p * (pass.radix - 1) * 2;
    const float* from = x + pass.stride * p * kPair;
    float* to = y + pass.stride * pass.radix * p * kPair;
    for (std::int64_t i = 0; i < pass.stride * kPair; i += kPair) {
      for (int part = 0; part < kLanes; part += kPartLanes) {
        butterfly(from + i + part, to + i + part, w);
      }
    }
  }
}

void pass_of_2(const FourierPass& pass, const float* x, float* y) {
  const std::int64_t in = pass.length / 2 * pass.stride * kPair, out = pass.stride * kPair;
  each_butterfly(pass, x, y, [=](const float* from, float* to, const float* w) {
    const Complex a = load_complex(from), b = load_complex(from + in);
    store_complex(a + b, to);
    store_complex(times(a - b, w), to + out);
  });
}

void pass_of_4(const FourierPass& pass, const float* x, float* y) {
  const std::int64_t in = pass.length / 4 * pass.stride * kPair, out = pass.stride * kPair;
  each_butterfly(pass, x, y, [=](const float* from, float* to, const float* w) {
    const Complex a = load_complex(from), c = load_complex(from + 2 * in);
    const Complex b = load_complex(from + in), d = load_complex(from + 3 * in);
    const Complex even = a + c, odd = a - c, other_even = b + d, other_odd = b - d;
    store_complex(even + other_even, to);
    store_complex(times(minus_i(odd, other_odd), w), to + out);
    store_complex(times(even - other_even, w + 2), to + 2 * out);
    store_complex(times(plus_i(odd, other_odd), w + 4), to + 3 * out);
  });
}

/// Odd radix: x[k] and x[radix - k] have conjugate roots; their sum has the cosines, their difference the sines.
void pass_of_odd(const FourierPass& pass, const float* x, float* y) {
  const std::int64_t radix = pass.radix, half = radix / 2;
  const std::int64_t in = pass.length / radix * pass.stride * kPair, out = pass.stride * kPair;
  const float* roots = pass.roots.data();
  each_butterfly(pass, x, y, [=](const float* from, float* to, const float* w) {
    Complex sums[internal::kMostRadix / 2 + 1], differences[internal::kMostRadix / 2 + 1];
    const Complex first = load_complex(from);
    Complex all_of_them = first;
    for (std::int64_t k = 1; k <= half; ++k) {
      const Complex a = load_complex(from + k * in), b = load_complex(from + (radix - k) * in);
      sums[k] = a + b;
      differences[k] = a - b;
      all_of_them = all_of_them + sums[k];
    }
    store_complex(all_of_them, to);
    for (std::int64_t j = 1; j <= half; ++j) {
      Complex cosines = first, sines = {};
      for (std::int64_t k = 1; k <= half; ++k) {
        const float* root = roots + j * k % radix * 2;
        cosines = cosines + Complex{sums[k].re * root[0], sums[k].im * root[0]};
        sines = sines + Complex{differences[k].re * root[1], differences[k].im * root[1]};
      }
      store_complex(times(minus_i(cosines, sines), w + (j - 1) * 2), to + j * out);
      store_complex(times(plus_i(cosines, sines), w + (radix - j - 1) * 2), to + (radix - j) * out);
    }
  });
}

/// Z of z: where it lies at last.
float* transform(const RealFourier& fourier, float* z, float* other) {
  for (const FourierPass& pass : fourier.passes) {
    const auto run = pass.radix == 4 ? pass_of_4 : pass.radix == 2 ? pass_of_2 : pass_of_odd;
    run(pass, z, other);
    std::swap(z, other);
  }
  return z;
}

/// The spectrum X of x from Z: with E = (Z[k] + conj Z[m - k]) / 2 of the even samples and O = (Z[k] - conj Z[m - k]) /
/// 2i of the odd ones, X[k] = E + w(n)^k O.
template <bool IsSquared>
void power_of(const RealFourier& fourier, const float* Z, float* power) {
  const std::int64_t m = fourier.n / 2;
  for (std::int64_t k = 0; k <= m; ++k) {
    const float* w = fourier.halves.data() + 2 * k;
    for (int part = 0; part < kLanes; part += kPartLanes) {
      const Complex a = load_complex(Z + k % m * kPair + part);
      const Complex b = load_complex(Z + (m - k) % m * kPair + part);
      const Complex even = {(a.re + b.re) * 0.5F, (a.im - b.im) * 0.5F};
      const Complex odd = times({a.im + b.im, b.re - a.re}, w);
      const Complex X = even + odd;
      store_part(X.re * X.re + X.im * X.im, power + k * kLanes + part);
    }
    if (!IsSquared) store(root(load(power + k * kLanes)), power + k * kLanes);
  }
}

typedef float Four __attribute__((vector_size(16)));

/// Frames side by side: x[i][lane] = window[i] * sample i of the lane's frame, 4 by 4.
void gather(const LogMelBlock& block, float* x) {
  std::memset(x, 0, static_cast<std::size_t>(block.fourier->n * kLanes) * sizeof(float));
  for (std::int64_t i = block.window_begin; i < block.window_end; i += 4) {
    Four window;
    std::memcpy(&window, block.window + i, sizeof window);
    for (int lane = 0; lane < kLanes; lane += 4) {
      Four rows[4];
      for (int r = 0; r < 4; ++r) {
        std::memcpy(&rows[r], block.frames[lane + r] + i, sizeof rows[r]);
        rows[r] *= window;
      }
      const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
      const Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
      const Four c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
      const Four d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
      const Four columns[] = {
          __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
          __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
      for (int r = 0; r < 4; ++r) {
        std::memcpy(x + (i + r) * kLanes + lane, &columns[r], sizeof columns[r]);
      }
    }
  }
}

/// ln x for x >= 0, within 1 ulp; minus infinity of 0. With x = 2^e (1 + t), t from 2^-0.5 - 1 to 2^0.5 - 1, and
/// s = t / (2 + t): ln(1 + t) = 2 s + 2 s^3 / 3 + .. to s^9; 2 s = t - t^2 / 2 + s t^2 / 2, whose first term is exact.
TRIREME_INLINE Part logarithm(const Part& x) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  const Part is_small_scale = x < kLeast ? Part{} + 0x1p25F : Part{} + 1.0F;
  const Part scaled = x * is_small_scale;
  IntPart bits;
  std::memcpy(&bits, &scaled, sizeof bits);
  const IntPart root_half = IntPart{} + 0x3F3504F3;
  const IntPart exponent = (bits - root_half) >> 23;
  bits -= exponent << 23;
  Part mantissa;
  std::memcpy(&mantissa, &bits, sizeof mantissa);
  Part e = __builtin_convertvector(exponent, Part);
  e = x < kLeast ? e - 25.0F : e;
  const Part t = mantissa - 1.0F, s = t / (t + 2.0F), z = s * s, half = t * t * 0.5F;
  const Part rest =
      z * (z * (z * (z * 0x1.c71c72p-3F + 0x1.24924ap-2F) + 0x1.99999ap-2F) + 0x1.555556p-1F);
  const Part low = s * (half + rest) + e * 0x1.7f7d1cp-20F;  // ln 2 in two parts: e * high is exact
  const Part y = e * 0x1.62e400p-1F - ((half - low) - t);
  const Part infinity = Part{} + std::numeric_limits<float>::infinity();
  const Part of_finite = x == 0.0F ? -infinity : y;
  return x < infinity ? of_finite : x;  // NaN too
}

void filter(const LogMelBlock& block, const float* power) {
  for (std::int64_t m = 0; m < block.num_mels; ++m) {
    const internal::MelFilter& filter = block.filters[m];
    const float* bins = power + filter.first * kLanes;
    Lanes sum = {};
    for (const float weight : filter.weights) {
      sum = multiply_add(all(weight), load(bins), sum);
      bins += kLanes;
    }
    sum = sum + all(block.log_offset);
    for (Part& part : sum.part) part = logarithm(part);
    float lanes[kLanes];
    store(sum, lanes);
    for (std::int64_t lane = 0; lane < block.count; ++lane) {
      block.out[lane * block.num_mels + m] = lanes[lane];
    }
  }
}

void log_mel(const LogMelBlock& block) {
  const std::int64_t floats = internal::buffer_floats(block.fourier->n);
  gather(block, block.scratch);
  float* Z = transform(*block.fourier, block.scratch, block.scratch + floats);
  float* power = Z == block.scratch ? block.scratch + floats : block.scratch;
  (block.is_squared ? power_of<true> : power_of<false>)(*block.fourier, Z, power);
  filter(block, power);
}

#undef TRIREME_INLINE

}  // namespace

constexpr internal::LogMelLoop kLogMel = log_mel;

}  // namespace trireme::speech::TRIREME_ISA_NAMESPACE
