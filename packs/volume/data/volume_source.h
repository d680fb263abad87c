#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packs/volume/data/kept_volumes.h"
#include "packs/volume/data/random_intensities.h"
#include "packs/volume/kernels/crop.h"
#include "trireme/data.h"

namespace trireme::volume {

/// (min(max(value, low), high) - mean) / deviation; the defaults are those of 3D U-Net on KiTS, in Hounsfield units.
struct IntensityScale {
  float low = -79, high = 304;
  float mean = 101, deviation = 76.9F;
};

/// Training: patches as 3D U-Net takes them (choose_crop), mirrored along each axis by itself, then brighter or darker, and noisy.
struct RandomPatchOptions {
  double foreground_share = 0.4;
  int num_objects = 2;
  double flip_probability = 1.0 / 3;  ///< Of each axis.
  RandomIntensityOptions intensities;
};

/// Of voxels in the reference of 3D U-Net on KiTS: z, y, x, millimetres.
inline constexpr Spacing kKitsSpacing = {1.6, 1.2, 1.2};

/// What a sample is. All of it changes results but `keep_bytes`.
struct VolumeOptions {
  VolumeShape patch = {128, 128, 128};
  /// All cases are brought to these voxels when they are read, values trilinear, labels by the nearest; none: each stays as it
  /// is. 3D U-Net on KiTS: kKitsSpacing.
  std::optional<Spacing> spacing;
  IntensityScale intensities;
  /// None: the middle of the volume, as it lies.
  std::optional<RandomPatchOptions> random;
  std::uint64_t seed = 0;                           ///< Of all that chance decides.
  std::int64_t keep_bytes = std::int64_t{2} << 30;  ///< Of cases kept unpacked, in each process.
};

/// Patches of NIfTI volumes with their labels, one of each case in an epoch. Where a case is shorter than the patch, its outermost voxels are repeated, on both sides alike.
///
/// Fields   `image` f32 [1, depth, height, width]; `label` u8 [depth, height, width]; axes z, y, x.
/// Errors   of read: those of read_volume.
/// Order    crop, flips, brightness and noise are functions of (seed, sample, visit), each of a stream of its own: not of ranks,
///          threads or order.
/// Cost     a case is unpacked and resampled when it is asked for, unless it is kept: 5 bytes a voxel. A training looks once for each case's
///          objects.
/// Threads  immutable.
/// Source   Isensee et al., "nnU-Net", Nature Methods 2021; MLPerf's reference of 3D U-Net.
class VolumeSource : public data::Source {
 public:
  /// Errors   kInvalidArgument, naming it, for an option out of range; those of find_volumes' files: none is opened here.
  VolumeSource(std::vector<VolumeFiles> files, const VolumeOptions& options);

  std::int64_t num_samples() const override { return std::ssize(volumes_.files()); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;

  /// Of names and sizes of files, and of options. Errors: kIo.
  std::string identity() const override;

 private:
  struct Places;

  Places places_of(data::Sample sample, const LabelledVolume& volume) const;
  RandomIntensities intensities_of(data::Sample sample) const;

  VolumeOptions options_;
  KeptVolumes volumes_;
  std::vector<data::Field> fields_;
  std::unique_ptr<ForegroundCache> foregrounds_;  ///< Null where nothing is random.
};

}  // namespace trireme::volume
