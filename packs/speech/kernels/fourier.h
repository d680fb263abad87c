#pragma once

#include <cstdint>
#include <vector>

namespace trireme::speech::internal {

/// The largest prime factor of n_fft / 2 that a transform is made for.
inline constexpr std::int64_t kMostRadix = 61;

/// A pass of Stockham's transform, which sorts as it goes: `stride` interleaved transforms of `length` become radix *
/// stride ones of length / radix. With m = length / radix, w(n) = exp(-2 pi i / n), for p < m, j < radix, q < stride:
///
///     y[q + stride (radix p + j)] = w(length)^(p j)  sum over k < radix of  w(radix)^(j k) x[q + stride (p + k m)]
///
/// Source   Van Loan, "Computational frameworks for the fast Fourier transform", 1992, section 1.7.
struct FourierPass {
  std::int64_t radix, length, stride;
  std::vector<float> twiddles;  ///< [m][radix - 1][2]: w(length)^(p j), j from 1 on.
  std::vector<float> roots;     ///< [radix][2]: exp(2 pi i j / radix); of odd radices alone.
};

/// The transform of n real numbers by one of n / 2 complex ones.
struct RealFourier {
  std::int64_t n = 0;
  std::vector<FourierPass> passes;  ///< Of n / 2: of 4 first, then of 2, then odd primes.
  std::vector<float> halves;        ///< [n / 2 + 1][2]: w(n)^k, halved.
};

/// Tables computed in f64.
///
/// n        even, from 2 on, no prime factor of n / 2 above kMostRadix; else kInvalidArgument.
RealFourier make_real_fourier(std::int64_t n);

}  // namespace trireme::speech::internal
