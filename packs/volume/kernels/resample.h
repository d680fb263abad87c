#pragma once

#include <array>
#include <cstdint>

#include "packs/volume/kernels/shape.h"

namespace trireme::volume {

/// How long voxels are: z, y, x, in millimetres.
using Spacing = std::array<double, 3>;

/// Whether voxels have the same lengths, but for rounding to f32, as files have them.
bool is_same_spacing(const Spacing& a, const Spacing& b);

/// The voxels of a volume that is brought to another spacing: floor(side * from / to + 0.0001), at least 1.
///
/// Errors   kInvalidArgument for a spacing that is not above 0, or a shape that check_shape refuses.
VolumeShape resampled_shape(const VolumeShape& shape, const Spacing& from, const Spacing& to);

/// Values between voxels, trilinear: along an axis of n voxels that becomes m long, place i is taken at
///
///     s = i (n - 1) / (m - 1)       the first and last voxel stay where they are; m = 1: at 0
///     v = (1 - f) v[k] + f v[k+1]   k = floor(s), f = s - k
///
/// first along z and y, then along x; products and sums are f32 and not fused.
///
/// values   [from], resampled [to]; not overlapping.
/// Cost     4 * to.depth * to.height * from.width operations and some for each voxel.
/// Source   torch's `interpolate` with `align_corners`, as MLPerf's 3D U-Net prepares KiTS; equal to it but for rounding.
void resample_linear(const VolumeShape& from, const float* values, const VolumeShape& to,
                     float* resampled);

/// Labels as they are: place i along an axis is that of voxel floor(i n / m).
///
/// Source   torch's `interpolate`, `nearest`.
void resample_nearest(const VolumeShape& from, const std::uint8_t* labels, const VolumeShape& to,
                      std::uint8_t* resampled);

}  // namespace trireme::volume
