#pragma once

// Boxes to code and match, losses to choose from, and what processors make of them, for tests.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "packs/vision/cuda/matching.h"
#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "packs/vision/kernels/permutation.h"
#include "packs/vision/kernels/selection.h"
#include "tests/packs/vision/cuda/detection_problem.h"

namespace trireme::vision::cuda {

struct CodeProblem {
  explicit CodeProblem(std::int64_t n) : codes(4 * n), decoded(4 * n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_real_distribution<float> place(-50, 50), extent(0.5F, 40);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::vector<float>* some : {&boxes, &anchors}) {
        const float x = place(random), y = place(random);
        some->insert(some->end(), {x, y, x + extent(random), y + extent(random)});
      }
    }
    encode_boxes(coding, boxes.data(), anchors.data(), n, codes.data());
    decode_boxes(coding, codes.data(), anchors.data(), n, decoded.data());
  }

  BoxCoding coding{.weights = {10, 10, 5, 5}, .largest_log = 1.5F};
  std::vector<float> boxes, anchors, codes, decoded;
};

/// Overlaps with many ties, some truths that overlap with nothing.
struct MatchProblem {
  static constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{0, 5},   {5, 0},   {1, 1},
                                                                     {3, 255}, {7, 256}, {5, 600}};

  MatchProblem(std::int64_t num_truth, std::int64_t num_anchors)
      : truth(num_truth), anchors(num_anchors), values(num_truth * num_anchors) {
    vision::box_overlaps(truth.boxes.data(), num_truth, anchors.boxes.data(), num_anchors,
                         values.data());
  }

  DeviceOverlaps overlaps() const {
    return {values.data(), std::ssize(truth.scores), num_anchors()};
  }
  std::int64_t num_anchors() const { return std::ssize(anchors.scores); }

  std::vector<std::int64_t> matched(const MatchOptions& options) const {
    std::vector<std::int64_t> matches(num_anchors());
    vision::match_anchors(options, values, std::ssize(truth.scores), matches);
    return matches;
  }

  std::vector<std::int64_t> matched_as_ssd(float threshold) const {
    std::vector<std::int64_t> matches(num_anchors());
    vision::match_ssd(threshold, values, std::ssize(truth.scores), matches);
    return matches;
  }

  BoxProblem truth, anchors;
  std::vector<float> values;
};

/// One anchor in nine is matched; losses of few values, so that they tie.
struct SelectionProblem {
  explicit SelectionProblem(std::int64_t n) {
    std::mt19937 random(static_cast<unsigned>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      losses.push_back(static_cast<float>(random() % 20) / 4);
      is_matched.push_back(random() % 9 == 0);
    }
  }

  std::vector<float> losses;
  std::vector<std::uint8_t> is_matched;
};

}  // namespace trireme::vision::cuda
