#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "packs/speech/kernels/log_mel.h"

namespace trireme::speech::reference {

inline double mel_of(double hz, MelScale scale) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hz / 700);
  return hz < 1000 ? hz * 3 / 200 : 15 + 27 * std::log(hz / 1000) / std::log(6.4);
}

/// Looked for by bisection, so that no inverse enters.
inline double hz_of(double mel, MelScale scale) {
  double low = 0, high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double half = (low + high) / 2;
    (mel_of(half, scale) < mel ? low : high) = half;
  }
  return low;
}

/// [frames, n_mels] by the formulas of log_mel.h and mel_filters.h, in f64.
inline std::vector<double> log_mel(const MelOptions& o, const std::vector<float>& sound) {
  const auto n = static_cast<std::int64_t>(sound.size()), bins = o.n_fft / 2 + 1;
  const std::int64_t side = o.center ? o.n_fft / 2 : 0, first = (o.n_fft - o.win_length) / 2;
  const auto sample = [&](std::int64_t i) -> double {
    if (i < 0) i = o.pad_mode == PadMode::kReflect ? -i : n;
    if (i >= n) i = o.pad_mode == PadMode::kReflect ? 2 * n - 2 - i : n;
    return i < 0 || i >= n ? 0 : sound[static_cast<std::size_t>(i)];
  };
  const double low = mel_of(o.f_min, o.mel_scale), high = mel_of(o.f_max, o.mel_scale);
  std::vector<double> corners;
  for (std::int64_t m = 0; m < o.n_mels + 2; ++m) {
    const double part = static_cast<double>(m) / static_cast<double>(o.n_mels + 1);
    corners.push_back(hz_of(low + (high - low) * part, o.mel_scale));
  }
  /// How high triangle m is at a frequency.
  const auto weight = [&](std::int64_t m, std::int64_t k) {
    const double a = corners[static_cast<std::size_t>(m)],
                 b = corners[static_cast<std::size_t>(m + 1)],
                 c = corners[static_cast<std::size_t>(m + 2)];
    const double hz = static_cast<double>(k * o.sample_rate) / static_cast<double>(o.n_fft);
    const double height = hz <= a || hz >= c ? 0 : hz < b ? (hz - a) / (b - a) : (c - hz) / (c - b);
    return o.norm == MelNorm::kSlaney ? height * 2 / (c - a) : height;
  };
  std::vector<std::complex<double>> roots;
  for (std::int64_t i = 0; i < o.n_fft; ++i) {
    roots.push_back(
        std::polar(1.0, -2 * M_PI * static_cast<double>(i) / static_cast<double>(o.n_fft)));
  }
  std::vector<double> window;
  for (std::int64_t i = 0; i < o.win_length; ++i) {
    const double turn = 2 * M_PI * static_cast<double>(i) / static_cast<double>(o.win_length);
    window.push_back(0.5 - 0.5 * std::cos(turn));
  }
  std::vector<double> out;
  const std::int64_t frames = 1 + (n + 2 * side - o.n_fft) / o.hop_length;
  for (std::int64_t t = 0; t < frames; ++t) {
    std::vector<double> power;
    for (std::int64_t k = 0; k < bins; ++k) {
      std::complex<double> sum = 0;
      for (std::int64_t i = 0; i < o.win_length; ++i) {
        sum += window[static_cast<std::size_t>(i)] * sample(t * o.hop_length - side + first + i) *
               roots[static_cast<std::size_t>((first + i) * k % o.n_fft)];
      }
      power.push_back(o.power == 2 ? std::norm(sum) : std::abs(sum));
    }
    for (std::int64_t m = 0; m < o.n_mels; ++m) {
      double sum = 0;
      for (std::int64_t k = 0; k < bins; ++k) {
        sum += weight(m, k) * power[static_cast<std::size_t>(k)];
      }
      out.push_back(std::log(sum + o.log_offset));
    }
  }
  return out;
}

}  // namespace trireme::speech::reference
