#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "tests/packs/vision/reference/boxes.h"
#include "trireme/base/random.h"

namespace trireme::vision::reference {

/// As kernels::batched_nms: each box against all of its class that were kept before.
inline std::vector<std::int64_t> batched_nms(std::span<const float> boxes,
                                             std::span<const float> scores,
                                             std::span<const std::int64_t> classes,
                                             double threshold) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  std::vector<std::int64_t> kept;
  for (const std::int64_t i : order) {
    const bool is_out = std::ranges::any_of(kept, [&](std::int64_t k) {
      return classes[k] == classes[i] &&
             double{box_overlap(&boxes[k * 4], &boxes[i * 4])} > threshold;
    });
    if (!is_out) kept.push_back(i);
  }
  return kept;
}

/// As kernels::nms: all are of one class.
inline std::vector<std::int64_t> nms(std::span<const float> boxes, std::span<const float> scores,
                                     double threshold) {
  return batched_nms(boxes, scores, std::vector<std::int64_t>(scores.size()), threshold);
}

/// As kernels::mine_hard_negatives: negatives are sorted.
inline std::vector<std::uint8_t> mine_hard_negatives(std::span<const float> losses,
                                                     std::span<const std::uint8_t> is_matched,
                                                     std::int64_t count) {
  std::vector<std::uint8_t> is_chosen(is_matched.begin(), is_matched.end());
  std::vector<std::int64_t> negatives;
  for (std::int64_t i = 0; i < std::ssize(losses); ++i) {
    if (is_matched[i] == 0) negatives.push_back(i);
  }
  std::ranges::stable_sort(negatives, [&](auto a, auto b) { return losses[a] > losses[b]; });
  for (std::int64_t k = 0; k < std::min(count, std::ssize(negatives)); ++k) {
    is_chosen[negatives[k]] = 1;
  }
  return is_chosen;
}

/// As kernels::fixed_nonzero: the places alone; its result is at most their number.
inline std::vector<std::int64_t> fixed_nonzero(std::span<const std::uint8_t> values,
                                               std::int64_t num_places) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    if (values[i] != 0) found.push_back(i);
  }
  std::vector<std::int64_t> places(num_places, 0);
  for (std::int64_t place = 0; place < num_places && !found.empty(); ++place) {
    places[place] = found[place % std::ssize(found)];
  }
  return places;
}

/// As kernels::random_permutation: two calls of Philox for each index.
inline std::vector<std::int64_t> random_permutation(std::uint64_t seed, std::int64_t n) {
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto counter = static_cast<std::uint32_t>(i / 4);
    const std::uint64_t upper = philox({counter, 0, 0, 0}, key)[i % 4];
    const std::uint64_t lower = philox({counter, 1, 0, 0}, key)[i % 4];
    numbers.push_back((upper << 32) | lower);
  }
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return numbers[a] < numbers[b]; });
  return order;
}

}  // namespace trireme::vision::reference
