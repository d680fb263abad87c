#pragma once

// Boxes and regions on the host, for tests.

#include <cstdint>
#include <random>
#include <vector>

#include "packs/vision/kernels/roi_align.h"
#include "tests/kernels/random_numbers.h"

namespace trireme::vision::cuda {

/// Boxes on a grid, so that overlaps hit thresholds exactly; scores of few values, so that they
/// tie.
struct BoxProblem {
  explicit BoxProblem(std::int64_t n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_int_distribution<int> place(0, 100), extent(0, 40), score(0, 50), kind(0, 2);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<float>(place(random)), y = static_cast<float>(place(random));
      const auto width = static_cast<float>(extent(random));
      boxes.insert(boxes.end(), {x, y, x + width, y + static_cast<float>(extent(random))});
      scores.push_back(static_cast<float>(score(random)) / 50);
      classes.push_back(kind(random) * 1000 - 1);
    }
  }

  std::vector<float> boxes, scores;
  std::vector<std::int64_t> classes;
};

/// Regions inside, across every edge and outside of a map, tiny and inverted ones too.
struct RoiProblem {
  RoiProblem(const FeatureShape& shape, const RoiAlignSettings& options)
      : shape(shape),
        options(options),
        features(kernels::random_numbers<float>(
            shape.batch * shape.height * shape.width * shape.channels, 1, 0)),
        gradient(kernels::random_numbers<float>(
            kNumRegions * options.pooled_height * options.pooled_width * shape.channels, 3, 0)) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> y(-8, static_cast<float>(shape.height) + 8);
    std::uniform_real_distribution<float> x(-8, static_cast<float>(shape.width) + 8);
    for (std::int64_t i = 0; i < kNumRegions; ++i) {
      const float x1 = x(random), y1 = y(random);
      const bool is_tiny = i % 5 == 0;
      regions.insert(regions.end(), {static_cast<float>(i % shape.batch), x1, y1,
                                     is_tiny ? x1 + 0.1F : x(random), is_tiny ? y1 : y(random)});
    }
  }

  static constexpr std::int64_t kNumRegions = 40;
  FeatureShape shape;
  RoiAlignSettings options;
  std::vector<float> features, gradient, regions;
};

inline std::vector<RoiProblem> roi_problems() {
  return {{{2, 13, 17, 5}, {.pooled_height = 3, .pooled_width = 4, .num_samples = 2}},
          {{1, 9, 8, 64}, {.num_samples = 1, .is_aligned = true}},
          {{1, 20, 21, 67}, {.pooled_height = 2, .pooled_width = 2, .scale = 0.5}},
          {{3, 1, 1, 16}, {.num_samples = 2, .is_aligned = true}}};
}

}  // namespace trireme::vision::cuda
