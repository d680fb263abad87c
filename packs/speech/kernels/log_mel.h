#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/speech/kernels/fourier.h"
#include "packs/speech/kernels/mel_filters.h"
#include "trireme/kernels/spread.h"

namespace trireme::speech {

/// What stands beyond the ends of an utterance, where frames are centred.
enum class PadMode : std::uint8_t { kReflect, kConstant };

/// By the names and defaults of torchaudio's MelSpectrogram; the window is Hann's. All of it changes results.
struct MelOptions {
  std::int64_t sample_rate = 16000;
  std::int64_t n_fft = 400;     ///< Samples of a transform: even.
  std::int64_t win_length = 0;  ///< Samples of the window, in the transform's middle; 0: n_fft.
  std::int64_t hop_length = 0;  ///< Samples from frame to frame; 0: win_length / 2.
  double f_min = 0, f_max = 0;  ///< In Hz; f_max 0: sample_rate / 2, rounded down.
  std::int64_t n_mels = 128;
  double power = 2;    ///< Of a bin's magnitude: 1 or 2.
  bool center = true;  ///< Frame t is about sample t * hop_length; else it begins there.
  PadMode pad_mode = PadMode::kReflect;
  MelNorm norm = MelNorm::kNone;
  MelScale mel_scale = MelScale::kHtk;
  double log_offset = 1e-6;  ///< Is added before the logarithm, so that silence has one.
};

/// Samples to features: frames, windowed; power of their spectrum; filters on the mel scale; natural logarithm.
///
///     out[t][m] = log( sum over k of filter[m][k] |DFT(window * frame t)[k]|^power  +  log_offset )
///
/// torchaudio's `torch.log(MelSpectrogram(..)(x) + log_offset)`, transposed, with filters made in f64. Computed in f32;
/// sums over k from the lowest bin on. Sixteen frames at once, one in each place of a vector.
///
/// Order     the bits of a frame depend on its samples alone, not on its neighbours, on threads or the processor.
/// Cost      some 0.3 n_fft log2(n_fft) operations of vectors of 8 a frame; 32 n_fft floats of scratch a thread, and a
///           copy of the samples.
/// Threads   immutable.
class LogMel {
 public:
  /// Errors   kInvalidArgument, naming it, for an option out of range.
  explicit LogMel(const MelOptions& options);

  /// Samples of which there is a frame: centred and reflected n_fft / 2 + 1, centred 1, else n_fft.
  std::int64_t least_samples() const;

  /// Of so many samples: 1 + samples / hop_length where frames are centred, else those that lie within.
  ///
  /// Errors   kInvalidArgument for less than least_samples().
  std::int64_t num_frames(std::int64_t num_samples) const;

  /// samples   finite; those that are not give frames that are not.
  /// out       [num_frames(samples), n_mels], written.
  /// Errors    those of num_frames; kInvalidArgument for an `out` of another size.
  void operator()(std::span<const float> samples, std::span<float> out) const;

  /// As above, with no less than 256 frames a thread.
  void operator()(std::span<const float> samples, std::span<float> out,
                  const kernels::Spread& spread) const;

  /// With what was left to it filled in.
  const MelOptions& options() const { return options_; }

 private:
  std::vector<float> padded(std::span<const float> samples) const;

  MelOptions options_;
  std::vector<float> window_;  ///< [n_fft and up to 3 more]
  internal::RealFourier fourier_;
  std::vector<internal::MelFilter> filters_;
};

}  // namespace trireme::speech
