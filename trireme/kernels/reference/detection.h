#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace trireme::kernels::reference {

/// As kernels::nms: each box against all that were kept before.
inline std::vector<std::int64_t> nms(std::span<const float> boxes, std::span<const float> scores,
                                     double threshold) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  const auto overlap = [&](std::int64_t a, std::int64_t b) {
    const float* p = boxes.data() + a * 4;
    const float* q = boxes.data() + b * 4;
    const float width = std::max(0.0F, std::min(p[2], q[2]) - std::max(p[0], q[0]));
    const float height = std::max(0.0F, std::min(p[3], q[3]) - std::max(p[1], q[1]));
    const float inter = width * height;
    const float area_p = (p[2] - p[0]) * (p[3] - p[1]);
    const float area_q = (q[2] - q[0]) * (q[3] - q[1]);
    return inter / (area_p + area_q - inter);
  };
  std::vector<std::int64_t> kept;
  for (const std::int64_t i : order) {
    const bool is_out = std::ranges::any_of(
        kept, [&](std::int64_t k) { return static_cast<double>(overlap(k, i)) > threshold; });
    if (!is_out) kept.push_back(i);
  }
  return kept;
}

}  // namespace trireme::kernels::reference
