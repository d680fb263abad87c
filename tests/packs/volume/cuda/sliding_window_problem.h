#pragma once

// Logits of windows that overlap, and what processors make of them, for tests.

#include <cstdint>
#include <vector>

#include "packs/volume/kernels/sliding_window.h"
#include "tests/kernels/random_numbers.h"

namespace trireme::volume::cuda {

struct WindowProblem {
  static constexpr std::int64_t kWidths[] = {1, 7, 16, 33};

  explicit WindowProblem(std::int64_t width)
      : volume{9, 11, 2 * width + 1},
        weights({.patch = {4, 6, width}, .overlap = 0.4}),
        windows(window_positions({.patch = {4, 6, width}, .overlap = 0.4}, volume)),
        logits(kernels::random_numbers<float>(std::ssize(windows) * window_logits(), 1, 3)),
        sum(num_classes * volume.count()),
        norm(volume.count()),
        labels(volume.count()) {
    for (std::size_t w = 0; w < windows.size(); ++w) {
      weights.accumulate(volume, windows[w], num_classes, logits.data() + w * window_logits(),
                         sum.data(), norm.data());
    }
    volume::argmax_classes(volume, num_classes, sum.data(), labels.data());
    means = sum;
    volume::average_windows(volume, num_classes, norm.data(), means.data());
  }

  std::int64_t window_logits() const { return num_classes * weights.patch().count(); }

  std::int64_t num_classes = 3;
  VolumeShape volume;
  WindowWeights weights;
  std::vector<Voxel> windows;
  std::vector<float> logits, sum, norm, means;
  std::vector<std::uint8_t> labels;
};

}  // namespace trireme::volume::cuda
