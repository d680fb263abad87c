#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::speech {

/// How good: the bits that the pass band keeps, as SoX and librosa call them.
enum class ResampleQuality : std::uint8_t { kHigh, kVeryHigh };

/// Which rates, in Hz. Changes results.
struct ResampleOptions {
  double from = 0, to = 0;
  ResampleQuality quality = ResampleQuality::kHigh;  ///< 20 bits, computed in f32; 28 bits, in f64.
};

/// How many samples `resample` makes of so many: to / from times as many, rounded up, as of torchaudio.
///
/// Errors   kInvalidArgument for rates that are not finite and above 0, or more than 2^10 apart.
std::int64_t resampled_length(std::int64_t num_samples, const ResampleOptions& options);

/// The same sound at another rate: sample i of the result stands at time i / to. Of equal rates a copy.
///
/// samples   of one channel.
/// Errors    those of resampled_length.
/// Order     a function of the samples and options alone; one thread. All of the samples enter each result, in effect
///           some hundreds: a part resampled alone differs at its ends.
/// Source    libsoxr, linear phase, pass band to 0.913 of the lower rate's half (kHigh).
std::vector<float> resample(std::span<const float> samples, const ResampleOptions& options);

}  // namespace trireme::speech
