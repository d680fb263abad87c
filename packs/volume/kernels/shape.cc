#include "packs/volume/kernels/shape.h"

#include <algorithm>

#include "trireme/error.h"

namespace trireme::volume {
namespace {

std::string joined(const Voxel& numbers, std::string_view between) {
  std::string text = std::to_string(numbers[0]);
  for (const int axis : {1, 2}) text.append(between).append(std::to_string(numbers[axis]));
  return text;
}

}  // namespace

std::string to_text(const VolumeShape& shape) { return joined(shape.sides(), " x "); }
std::string to_text(const Voxel& voxel) { return "(" + joined(voxel, ", ") + ")"; }

void check_shape(std::string_view what, const VolumeShape& shape, std::int64_t most) {
  const auto [z, y, x] = shape.sides();
  // Divisions, since a product may not fit.
  const bool is_good = std::min({z, y, x}) >= 1 && z <= most / y && z * y <= most / x;
  if (is_good) return;
  throw Error(ErrorKind::kInvalidArgument, std::string(what) + " has shape " + to_text(shape) +
                                               ", expected sides of 1 or more and at most " +
                                               std::to_string(most) + " voxels");
}

}  // namespace trireme::volume
