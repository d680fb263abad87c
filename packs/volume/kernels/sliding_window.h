#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packs/volume/kernels/shape.h"
#include "trireme/kernels/spread.h"

namespace trireme::volume {

/// Prediction of a volume by windows that overlap: each window's logits count by a Gaussian weight
/// of the place in the window,
///
///     sum[c, v]  = sum over windows of weight[v - begin] logits[c, v - begin]
///     norm[v]    = sum over windows of weight[v - begin]
///     mean[c, v] = sum[c, v] / norm[v]
///
///     weight[z, y, x] = max(smallest_weight, g_z g_y g_x)
///     g_i = exp(-(i - (P - 1) / 2)^2 / (2 (sigma P)^2))          i < P, a side of the patch
///
/// The weight is MONAI's; nnU-Net's differs in that its peak is at P / 2.
///
/// Layouts  logits [num_classes, patch], sum [num_classes, volume], norm [volume], all f32.
/// Order    windows add in the order of the calls, one product and one sum each, both rounded; so
///          results depend on neither the instruction set nor the threads.
/// Errors   kInvalidArgument where a shape is empty, a patch is larger than the volume along an
///          axis or does not lie within it, an option is out of range.
/// Source   Isensee et al., "nnU-Net", Nature Methods 2021.
struct SlidingWindowOptions {
  VolumeShape patch;
  double overlap = 0.5;           ///< Share of a side that neighbours have in common; [0, 1).
  double sigma = 0.125;           ///< Of the Gaussian, in sides of the patch; above 0.
  double smallest_weight = 1e-3;  ///< So that no voxel is left to rounding; within [0, 1].
};

/// Where windows begin, by z, y, x: along each axis ceil((D - P) / (P (1 - overlap))) + 1 of them,
/// spread evenly from 0 to D - P and rounded, halves to even, as nnU-Net does.
std::vector<Voxel> window_positions(const SlidingWindowOptions& options, const VolumeShape& volume);

/// A patch's weights by their factors along each axis.
class WindowWeights {
 public:
  explicit WindowWeights(const SlidingWindowOptions& options);

  const VolumeShape& patch() const { return patch_; }
  float smallest() const { return smallest_; }

  /// Along z, then y, then x: [depth + height + width].
  std::vector<float> factors() const;

  float at(std::int64_t z, std::int64_t y, std::int64_t x) const;

  /// Adds a window to `sum` and `norm`, which are zeros before the first.
  ///
  /// Cost     logits read once, the window's part of sum and norm read and written once.
  void accumulate(const VolumeShape& volume, const Voxel& begin, std::int64_t num_classes,
                  const float* logits, float* sum, float* norm,
                  const kernels::Spread& spread = kernels::on_caller) const;

 private:
  VolumeShape patch_;
  std::array<std::vector<float>, 3> factors_;
  float smallest_;
};

/// sum[c, v] /= norm[v], in place. kInvalidArgument, naming the voxel, where no window was; means
/// before it are made by then.
void average_windows(const VolumeShape& volume, std::int64_t num_classes, const float* norm,
                     float* sum, const kernels::Spread& spread = kernels::on_caller);

/// labels[v]: the class with the largest score, the first of equals. Of sums as well as of means,
/// since a norm is above 0.
///
/// num_classes  1 to 256.
/// scores       [num_classes, volume].
/// labels       [volume].
/// Errors       also kInvalidArgument, naming voxel and class, where a score is NaN.
void argmax_classes(const VolumeShape& volume, std::int64_t num_classes, const float* scores,
                    std::uint8_t* labels, const kernels::Spread& spread = kernels::on_caller);

namespace internal {

inline constexpr std::int64_t kMostSums = 1 << 20;  ///< Classes of a sum.
inline constexpr std::int64_t kMostLabels = 256;

void check_classes(const VolumeShape& volume, std::int64_t num_classes, std::int64_t most);
void check_window(const VolumeShape& patch, const VolumeShape& volume, const Voxel& begin);

}  // namespace internal

}  // namespace trireme::volume
