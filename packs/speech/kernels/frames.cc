#include "packs/speech/kernels/frames.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme::speech {

void normalize_per_feature(FrameShape shape, float* x, double epsilon) {
  const auto [frames, features] = shape;
  const auto count = static_cast<std::size_t>(features);
  std::vector<double> mean(count), squares(count);
  for (std::int64_t t = 0; t < frames; ++t) {
    for (std::size_t f = 0; f < count; ++f)
      mean[f] += x[t * features + static_cast<std::int64_t>(f)];
  }
  for (double& each : mean) each /= static_cast<double>(frames);
  for (std::int64_t t = 0; t < frames; ++t) {
    for (std::size_t f = 0; f < count; ++f) {
      const double apart = x[t * features + static_cast<std::int64_t>(f)] - mean[f];
      squares[f] += apart * apart;
    }
  }
  const auto others = static_cast<double>(std::max<std::int64_t>(frames - 1, 1));
  for (double& each : squares) each = 1 / (std::sqrt(each / others) + epsilon);
  for (std::int64_t t = 0; t < frames; ++t) {
    for (std::size_t f = 0; f < count; ++f) {
      float& value = x[t * features + static_cast<std::int64_t>(f)];
      value = static_cast<float>((value - mean[f]) * squares[f]);
    }
  }
}

std::int64_t stacked_frames(std::int64_t num_frames, const FrameStacking& stacking) {
  return (num_frames + stacking.subsample - 1) / stacking.subsample;
}

void stack_frames(FrameShape shape, const FrameStacking& stacking, const float* x, float* out) {
  const auto [frames, features] = shape;
  const std::int64_t stacked = stacked_frames(frames, stacking);
  for (std::int64_t t = 0; t < stacked; ++t) {
    const std::int64_t first = t * stacking.subsample;
    const std::int64_t present = std::min(stacking.stack, frames - first) * features;
    std::copy_n(x + first * features, present, out);
    std::fill_n(out + present, stacking.stack * features - present, 0.0F);
    out += stacking.stack * features;
  }
}

}  // namespace trireme::speech
