#include "packs/speech/kernels/fourier.h"

#include <cmath>
#include <numbers>
#include <string>

#include "trireme/error.h"

namespace trireme::speech::internal {
namespace {

/// exp(sign 2 pi i k / n), times scale.
void add_root(std::vector<float>& to, double sign, std::int64_t k, std::int64_t n,
              double scale = 1) {
  const double angle =
      sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  to.push_back(static_cast<float>(scale * std::cos(angle)));
  to.push_back(static_cast<float>(scale * std::sin(angle)));
}

FourierPass make_pass(std::int64_t radix, std::int64_t length, std::int64_t stride) {
  FourierPass pass{.radix = radix, .length = length, .stride = stride};
  for (std::int64_t p = 0; p < length / radix; ++p) {
    for (std::int64_t j = 1; j < radix; ++j) add_root(pass.twiddles, -1, p * j, length);
  }
  for (std::int64_t j = 0; j < radix && radix % 2 == 1; ++j) add_root(pass.roots, 1, j, radix);
  return pass;
}

/// 4 as long as it divides, then the smallest factor.
std::int64_t next_radix(std::int64_t length) {
  if (length % 4 == 0) return 4;
  for (std::int64_t radix = 2; radix <= kMostRadix; ++radix) {
    if (length % radix == 0) return radix;
  }
  return 0;
}

}  // namespace

RealFourier make_real_fourier(std::int64_t n) {
  constexpr std::int64_t kMost = 1 << 16;
  RealFourier fourier{.n = n};
  bool is_known = n >= 2 && n <= kMost && n % 2 == 0;
  std::int64_t stride = 1;
  for (std::int64_t length = n / 2; is_known && length > 1;) {
    const std::int64_t radix = next_radix(length);
    is_known = radix != 0;
    if (!is_known) break;
    fourier.passes.push_back(make_pass(radix, length, stride));
    length /= radix;
    stride *= radix;
  }
  if (!is_known) {
    throw Error(ErrorKind::kInvalidArgument,
                "n_fft is even, from 2 to 2^16, with prime factors up to " +
                    std::to_string(kMostRadix) + "; got " + std::to_string(n));
  }
  for (std::int64_t k = 0; k <= n / 2; ++k) add_root(fourier.halves, -1, k, n, 0.5);
  return fourier;
}

}  // namespace trireme::speech::internal
