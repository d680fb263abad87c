#pragma once

// The passes of sliding_window.h.

#include <cstdint>
#include <limits>

#include "packs/volume/cuda/sliding_window.h"
#include "packs/volume/kernels/sliding_window.h"
#include "trireme/kernels/cuda/passes.h"

namespace trireme::volume::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

/// One of the window's logits; after those of the last class come the weights alone.
struct AddWindow {
  DeviceWindowWeights weights;
  VolumeShape volume;
  std::int64_t num_voxels;
  Voxel begin;
  std::int64_t num_classes;
  const float* logits;
  float* sum;
  float* norm;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, x] = divide(i, weights.patch.width);
    const auto [slice, y] = divide(row, weights.patch.height);
    const auto [c, z] = divide(slice, weights.patch.depth);
    const std::int64_t voxel =
        ((begin[0] + z) * volume.height + begin[1] + y) * volume.width + begin[2] + x;
    const float weight = weight_at(z, y, x);
    if (c < num_classes) {
      sum[c * num_voxels + voxel] += weight * logits[i];
    } else {
      norm[voxel] += weight;
    }
  }

  TRIREME_HOST_DEVICE float weight_at(std::int64_t z, std::int64_t y, std::int64_t x) const {
    const float* along_y = weights.factors + weights.patch.depth;
    const float* along_x = along_y + weights.patch.height;
    const float weight = weights.factors[z] * along_y[y] * along_x[x];
    return weight > weights.smallest ? weight : weights.smallest;
  }
};

/// All classes of a voxel.
struct AverageVoxel {
  std::int64_t num_voxels, num_classes;
  const float* norm;
  float* sum;

  TRIREME_HOST_DEVICE void operator()(std::int64_t v) const {
    for (std::int64_t c = 0; c < num_classes; ++c) sum[c * num_voxels + v] /= norm[v];
  }
};

struct LabelVoxel {
  std::int64_t num_voxels, num_classes;
  const float* scores;
  std::uint8_t* labels;

  TRIREME_HOST_DEVICE void operator()(std::int64_t v) const {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t label = 0;
    for (std::int64_t c = 0; c < num_classes; ++c) {
      const float score = scores[c * num_voxels + v];
      if (!(score > best)) continue;
      best = score;
      label = c;
    }
    labels[v] = static_cast<std::uint8_t>(label);
  }
};

template <typename Each>
void accumulate_window_passes(const DeviceWindowWeights& weights, const VolumeShape& volume,
                              const Voxel& begin, std::int64_t num_classes, const float* logits,
                              float* sum, float* norm, const Each& each) {
  volume::internal::check_classes(volume, num_classes, volume::internal::kMostSums);
  volume::internal::check_window(weights.patch, volume, begin);
  each((num_classes + 1) * weights.patch.count(),
       AddWindow{weights, volume, volume.count(), begin, num_classes, logits, sum, norm});
}

template <typename Each>
void average_windows_passes(const VolumeShape& volume, std::int64_t num_classes, const float* norm,
                            float* sum, const Each& each) {
  volume::internal::check_classes(volume, num_classes, volume::internal::kMostSums);
  each(volume.count(), AverageVoxel{volume.count(), num_classes, norm, sum});
}

template <typename Each>
void argmax_classes_passes(const VolumeShape& volume, std::int64_t num_classes, const float* scores,
                           std::uint8_t* labels, const Each& each) {
  volume::internal::check_classes(volume, num_classes, volume::internal::kMostLabels);
  each(volume.count(), LabelVoxel{volume.count(), num_classes, scores, labels});
}

}  // namespace trireme::volume::cuda::internal
