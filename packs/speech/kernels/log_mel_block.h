#pragma once

#include <array>
#include <cstdint>

#include "packs/speech/kernels/fourier.h"
#include "packs/speech/kernels/mel_filters.h"

namespace trireme::speech::internal {

inline constexpr std::int64_t kBlockFrames = 16;

/// Floats of one of the two buffers of a block: n samples of each frame, and what is written beyond, four by four.
inline std::int64_t buffer_floats(std::int64_t n) { return (n + 3) * kBlockFrames; }

/// What a loop makes 16 frames from.
struct LogMelBlock {
  const RealFourier* fourier;
  std::array<const float*, kBlockFrames> frames;  ///< n samples each, and 3 more that may be read.
  std::int64_t count;                             ///< Of them that are written.
  const float* window;                            ///< [n], and 3 of 0.
  std::int64_t window_begin, window_end;          ///< Where it is not 0; the begin a multiple of 4.
  bool is_squared;
  const MelFilter* filters;  ///< [num_mels]
  std::int64_t num_mels;
  float log_offset;
  float* scratch;  ///< Two buffers.
  float* out;      ///< [count, num_mels]
};

using LogMelLoop = void (*)(const LogMelBlock& block);

}  // namespace trireme::speech::internal
