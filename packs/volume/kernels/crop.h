#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "packs/volume/kernels/components.h"

namespace trireme::volume {

struct CropOptions {
  VolumeShape patch;
  double foreground_share = 0.4;  ///< Of crops that are placed at an object.
  int num_objects = 2;            ///< Of each label: those with the largest boxes; 1 or more.
  Connectivity connectivity = Connectivity::kFaces;
};

/// What a case's crops are chosen by: the boxes of the largest objects of each label. A few hundred
/// bytes, made once for a case by one pass over its labels.
struct Foreground {
  /// The objects of one label, largest box first, then by their first voxels.
  struct Class {
    std::int32_t label = 0;
    std::vector<Component> objects;
  };

  VolumeShape shape;
  std::vector<Class> classes;  ///< In the order of labels.
};

/// Errors   kInvalidArgument as connected_components, and where an option is out of range.
Foreground find_foreground(const CropOptions& options, const VolumeShape& shape,
                           const std::uint8_t* labels);
Foreground find_foreground(const CropOptions& options, const VolumeShape& shape,
                           const std::int32_t* labels);

struct Crop {
  Voxel begin = {};
  std::int32_t label = 0;  ///< Of the object that it was placed at; 0: placed anywhere.
};

/// The biased crop of 3D U-Net. With probability `foreground_share` a label that is present, one of
/// its objects, and of the patches that contain its box, or where an axis of the box is longer,
/// that lie within it, one: each choice even. Otherwise, or in a case without labels, a patch
/// anywhere. Always inside the volume.
///
/// A pure function of its arguments: whoever asks for a sample, whenever, gets the same crop.
///
/// sample_index  of the sequence of draws that belongs to `seed`.
/// Errors        kInvalidArgument where the patch is larger than the volume along an axis (pad the
///               case first), or an option is out of range.
/// Order         a word of Philox (base/random.h) for each choice: whether an object, then which
///               label and which object, then z, y, x. Word w takes place w n / 2^32 of n.
/// Source        Isensee et al., "nnU-Net", Nature Methods 2021 (oversampling of foreground).
Crop choose_crop(const CropOptions& options, const Foreground& foreground, std::uint64_t seed,
                 std::uint64_t sample_index);

/// The foregrounds of a data set's cases, each found when it is first asked for. Thread-safe: cases
/// do not wait for each other.
class ForegroundCache {
 public:
  /// find   the foreground of a case; called once for each, again where it threw.
  ForegroundCache(std::int64_t num_cases, std::function<Foreground(std::int64_t case_index)> find);

  /// Stays valid as long as the cache. kInvalidArgument where there is no such case.
  const Foreground& at(std::int64_t case_index);

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Foreground> foreground;
  };

  std::int64_t num_cases_;
  std::function<Foreground(std::int64_t)> find_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace trireme::volume
