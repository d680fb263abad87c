#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "packs/volume/kernels/sliding_window.h"

namespace trireme::volume::reference {

/// The weight of a patch's voxel.
template <typename T>
T window_weight(const SlidingWindowOptions& options, const Voxel& voxel) {
  T exponent = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const T side = static_cast<T>(options.patch.sides()[axis]);
    const T distance = static_cast<T>(voxel[axis]) - (side - 1) / 2;
    exponent -= distance * distance / (2 * std::pow(static_cast<T>(options.sigma) * side, T{2}));
  }
  return std::max(static_cast<T>(options.smallest_weight), std::exp(exponent));
}

/// Means of all windows' logits, [num_classes, volume].
///
/// logits   [windows, num_classes, patch]
template <typename T>
std::vector<T> window_means(const SlidingWindowOptions& options, const VolumeShape& volume,
                            std::int64_t num_classes, const std::vector<Voxel>& windows,
                            const std::vector<T>& logits) {
  std::vector<T> sum(num_classes * volume.count()), norm(volume.count());
  const std::int64_t patch = options.patch.count();
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (std::int64_t i = 0; i < patch; ++i) {
      const Voxel inside = options.patch.voxel_at(i);
      const auto [z, y, x] = windows[w];
      const std::int64_t v =
          ((z + inside[0]) * volume.height + y + inside[1]) * volume.width + x + inside[2];
      const T weight = window_weight<T>(options, inside);
      norm[v] += weight;
      for (std::int64_t c = 0; c < num_classes; ++c) {
        sum[c * volume.count() + v] += weight * logits[(w * num_classes + c) * patch + i];
      }
    }
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= norm[i % norm.size()];
  return sum;
}

}  // namespace trireme::volume::reference
