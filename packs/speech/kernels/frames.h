#pragma once

#include <cstdint>

namespace trireme::speech {

/// Features of an utterance: [num_frames, num_features], dense.
struct FrameShape {
  std::int64_t num_frames = 0;
  std::int64_t num_features = 0;
};

/// Each feature less its mean over the frames, by its standard deviation over them, in place:
///
///     x[t][f] = (x[t][f] - mean[f]) / (deviation[f] + epsilon),   deviation^2 = sum (x - mean)^2 / (num_frames - 1)
///
/// Sums in f64, frame after frame. Of a single frame all are 0.
///
/// Source   NeMo's and MLPerf's `per_feature`.
void normalize_per_feature(FrameShape shape, float* x, double epsilon = 1e-5);

/// How frames are put together: RNN-T stacks 3 and keeps every third.
struct FrameStacking {
  std::int64_t stack = 1;      ///< Frames that one is made of: itself, then those behind it.
  std::int64_t subsample = 1;  ///< Every so many frames one is kept, the first among them.
};

/// Of so many frames: num_frames / subsample, rounded up.
std::int64_t stacked_frames(std::int64_t num_frames, const FrameStacking& stacking);

/// out[t][k * num_features + f] = x[t * subsample + k][f], k < stack; 0 behind the last frame.
///
/// out   [stacked_frames, stack * num_features], written; apart from x.
void stack_frames(FrameShape shape, const FrameStacking& stacking, const float* x, float* out);

}  // namespace trireme::speech
