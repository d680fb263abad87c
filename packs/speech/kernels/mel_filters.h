#pragma once

#include <cstdint>
#include <vector>

namespace trireme::speech {

/// How frequencies become mels: 2595 log10(1 + f / 700); or 3 f / 200, logarithmic from 1000 Hz on (Slaney's
/// Auditory Toolbox).
enum class MelScale : std::uint8_t { kHtk, kSlaney };

/// What a filter is divided by: nothing, its peak is 1; or half of its width in Hz.
enum class MelNorm : std::uint8_t { kNone, kSlaney };

namespace internal {

/// Weights of bins first, first + 1, ..; those of all others are 0. Empty where no bin lies between its ends.
struct MelFilter {
  std::int64_t first = 0;
  std::vector<float> weights;
};

struct MelBank {
  std::int64_t sample_rate, n_fft, n_mels;
  double f_min, f_max;
  MelNorm norm;
  MelScale mel_scale;
};

/// Triangles whose corners are as far apart on the mel scale, from f_min to f_max: each begins at its neighbour's peak.
/// Computed in f64, rounded once.
std::vector<MelFilter> make_mel_filters(const MelBank& bank);

}  // namespace internal
}  // namespace trireme::speech
