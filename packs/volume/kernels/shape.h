#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::volume {

/// A voxel, or a distance: z, y, x.
using Voxel = std::array<std::int64_t, 3>;

/// A volume [depth, height, width]: z, y, x, the last one dense.
struct VolumeShape {
  std::int64_t depth = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t count() const { return depth * height * width; }
  Voxel sides() const { return {depth, height, width}; }
  Voxel voxel_at(std::int64_t index) const {
    return {index / (height * width), index / width % height, index % width};
  }

  bool operator==(const VolumeShape&) const = default;
};

/// Voxels from `begin` to before `end`.
struct VolumeBox {
  Voxel begin = {};
  Voxel end = {};

  bool operator==(const VolumeBox&) const = default;
};

std::string to_text(const VolumeShape& shape);  ///< "210 x 333 x 333"
std::string to_text(const Voxel& voxel);        ///< "(z, y, x)"

/// Errors   kInvalidArgument that begins with `what`, where a side is below 1, or voxels are more
///          than `most`.
void check_shape(std::string_view what, const VolumeShape& shape,
                 std::int64_t most = std::int64_t{1} << 48);

}  // namespace trireme::volume
