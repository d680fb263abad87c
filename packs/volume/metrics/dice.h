#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/volume/kernels/shape.h"
#include "trireme/kernels/spread.h"

namespace trireme::volume {

/// Values of a volume, one or one a class for each voxel; the caller's.
template <typename T>
struct VolumeView {
  VolumeShape shape;
  std::span<const T> values;
};

/// A class's voxels in a prediction and in the truth. Parts (windows, ranks) add up; cases do not:
/// the field takes the mean of their Dice.
struct DiceCounts {
  std::uint64_t both = 0;
  std::uint64_t predicted = 0;
  std::uint64_t expected = 0;

  DiceCounts& operator+=(const DiceCounts& other);
  bool operator==(const DiceCounts&) const = default;

  /// (2 both + smoothing) / (predicted + expected + smoothing). NaN where the class is in neither
  /// and nothing smooths, as nnU-Net reports it; with MLPerf's smoothing, 1e-6, that is 1.
  double dice(double smoothing = 0) const;

  /// both / (predicted + expected - both); NaN likewise.
  double iou() const;
};

/// By class, background included.
///
/// predicted, expected  labels from 0 to num_classes - 1.
/// Errors   kInvalidArgument where shapes differ from each other or from the values, are empty, or
///          a label is out of range: names its voxel.
/// Cost     both read once; nearly free where 64 voxels in a row have equal labels.
/// Source   Dice, "Measures of the amount of ecologic association between species", 1945.
std::vector<DiceCounts> dice_counts(std::int64_t num_classes,
                                    const VolumeView<std::uint8_t>& predicted,
                                    const VolumeView<std::uint8_t>& expected,
                                    const kernels::Spread& spread = kernels::on_caller);
std::vector<DiceCounts> dice_counts(std::int64_t num_classes,
                                    const VolumeView<std::int32_t>& predicted,
                                    const VolumeView<std::int32_t>& expected,
                                    const kernels::Spread& spread = kernels::on_caller);

/// The mean over classes whose Dice is not NaN; NaN without any. For foreground leave out the
/// first.
double mean_dice(std::span<const DiceCounts> classes, double smoothing = 0);

/// The same of probabilities p, with t = 1 for a class's voxels and 0 for others. Parts add up.
struct SoftDiceSums {
  double both = 0;       ///< Sum of p t.
  double predicted = 0;  ///< Sum of p.
  double squares = 0;    ///< Sum of p^2.
  double expected = 0;   ///< Sum of t, which is that of t^2.

  SoftDiceSums& operator+=(const SoftDiceSums& other);

  /// (2 both + smoothing) / (predicted + expected + smoothing)
  double dice(double smoothing = 0) const;

  /// (2 both + smoothing) / (squares + expected + smoothing), as V-Net has it.
  double dice_of_squares(double smoothing = 0) const;
};

/// By class, background included.
///
/// num_classes    1 to 256.
/// probabilities  [num_classes, volume].
/// expected       [volume], labels.
/// Errors   as dice_counts, and kInvalidArgument where a probability is NaN or infinite: names its
///          voxel and class.
/// Order    in f64; voxel i adds to sum i mod 512 of a part of 2^18; then neighbours of 1, 2, 4 ...
///          sums; then parts in order. Depends on neither the instruction set nor the threads.
/// Source   Milletari, Navab and Ahmadi, "V-Net", 3DV 2016, section 3.
std::vector<SoftDiceSums> soft_dice_sums(std::int64_t num_classes,
                                         const VolumeView<float>& probabilities,
                                         const VolumeView<std::uint8_t>& expected,
                                         const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::volume
