#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "packs/vision/kernels/boxes.h"

namespace trireme::vision::reference {

/// The share of the union of two boxes x1, y1, x2, y2; NaN where both are empty.
inline float box_overlap(const float* p, const float* q) {
  const float width = std::max(0.0F, std::min(p[2], q[2]) - std::max(p[0], q[0]));
  const float height = std::max(0.0F, std::min(p[3], q[3]) - std::max(p[1], q[1]));
  const float inter = width * height;
  const float area_p = (p[2] - p[0]) * (p[3] - p[1]);
  const float area_q = (q[2] - q[0]) * (q[3] - q[1]);
  return inter / (area_p + area_q - inter);
}

/// As kernels::box_overlaps: each of a with each of b.
inline std::vector<float> box_overlaps(std::span<const float> a, std::span<const float> b) {
  std::vector<float> overlaps;
  for (std::size_t i = 0; i < a.size(); i += 4) {
    for (std::size_t j = 0; j < b.size(); j += 4) {
      const float overlap = box_overlap(&a[i], &b[j]);
      overlaps.push_back(std::isnan(overlap) ? 0 : overlap);
    }
  }
  return overlaps;
}

/// As kernels::encode_boxes, in f64.
inline std::vector<double> encode_boxes(const BoxCoding& coding, std::span<const float> boxes,
                                        std::span<const float> anchors) {
  std::vector<double> codes(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::size_t k = i % 4, axis = k % 2, low = i - k + axis, high = low + 2;
    const double weight = coding.weights[k];
    const double side = double{boxes[high]} - boxes[low];
    const double anchor_side = double{anchors[high]} - anchors[low];
    const double distance =
        (double{boxes[low]} + boxes[high]) / 2 - (double{anchors[low]} + anchors[high]) / 2;
    codes[i] = weight * (k < 2 ? distance / anchor_side : std::log(side / anchor_side));
  }
  return codes;
}

/// As kernels::decode_boxes, in f64.
inline std::vector<double> decode_boxes(const BoxCoding& coding, std::span<const float> codes,
                                        std::span<const float> anchors) {
  std::vector<double> boxes(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t axis = i % 2, low = i - i % 4 + axis, high = low + 2;
    const double anchor_side = double{anchors[high]} - anchors[low];
    const double shift = double{codes[low]} / coding.weights[axis];
    const double log_side =
        std::min<double>(double{codes[high]} / coding.weights[axis + 2], coding.largest_log);
    const double center = (double{anchors[low]} + anchors[high]) / 2 + shift * anchor_side;
    const double half = std::exp(log_side) * anchor_side / 2;
    boxes[i] = i == low ? center - half : center + half;
  }
  return boxes;
}

}  // namespace trireme::vision::reference
