#include "packs/speech/kernels/mel_filters.h"

#include <algorithm>
#include <cmath>

namespace trireme::speech::internal {
namespace {

// Slaney's scale: lines up to a frequency, where it has so many mels, then so many to a factor of 6.4.
constexpr double kHzOfMel = 200.0 / 3, kBreakHz = 1000, kBreakMel = kBreakHz / kHzOfMel;
constexpr double kMelsOfFactor = 27;

double to_mel(double hz, MelScale scale) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hz / 700);
  if (hz < kBreakHz) return hz / kHzOfMel;
  return kBreakMel + kMelsOfFactor * std::log(hz / kBreakHz) / std::log(6.4);
}

double to_hz(double mel, MelScale scale) {
  if (scale == MelScale::kHtk) return 700 * (std::pow(10, mel / 2595) - 1);
  if (mel < kBreakMel) return mel * kHzOfMel;
  return kBreakHz * std::exp((mel - kBreakMel) / kMelsOfFactor * std::log(6.4));
}

}  // namespace

std::vector<MelFilter> make_mel_filters(const MelBank& bank) {
  const double low = to_mel(bank.f_min, bank.mel_scale), high = to_mel(bank.f_max, bank.mel_scale);
  const auto corner = [&](std::int64_t i) {
    const double part = static_cast<double>(i) / static_cast<double>(bank.n_mels + 1);
    return to_hz(low + (high - low) * part, bank.mel_scale);
  };
  const std::int64_t num_bins = bank.n_fft / 2 + 1;
  const std::int64_t highest = bank.sample_rate / 2;  // of the last bin, as torchaudio rounds it
  const double hz_of_bin = static_cast<double>(highest) / static_cast<double>(num_bins - 1);
  std::vector<MelFilter> filters(static_cast<std::size_t>(bank.n_mels));
  for (std::int64_t m = 0; m < bank.n_mels; ++m) {
    MelFilter& filter = filters[static_cast<std::size_t>(m)];
    const double begin = corner(m), peak = corner(m + 1), end = corner(m + 2);
    const double scale = bank.norm == MelNorm::kSlaney ? 2 / (end - begin) : 1;
    for (std::int64_t k = 0; k < num_bins; ++k) {
      const double hz = static_cast<double>(k) * hz_of_bin;
      const double weight = std::min((hz - begin) / (peak - begin), (end - hz) / (end - peak));
      if (!(weight > 0)) continue;
      if (filter.weights.empty()) filter.first = k;
      filter.weights.push_back(static_cast<float>(weight * scale));
    }
  }
  return filters;
}

}  // namespace trireme::speech::internal
