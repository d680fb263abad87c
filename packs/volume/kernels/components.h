#pragma once

#include <cstdint>
#include <vector>

#include "packs/volume/kernels/shape.h"
#include "trireme/kernels/spread.h"

namespace trireme::volume {

/// Which voxels are neighbours: those that share ...
enum class Connectivity : std::uint8_t {
  kFaces = 6,
  kEdges = 18,    ///< a face or an edge.
  kCorners = 26,  ///< a face, an edge or a corner.
};

struct Component {
  std::int32_t label = 0;
  std::int64_t size = 0;  ///< Voxels.
  VolumeBox box;          ///< The smallest that holds it.

  bool operator==(const Component&) const = default;
};

/// Connected components of all labels at once: neighbours of equal label belong together, 0 is
/// background. In the order of their first voxels.
///
/// labels   [count]
/// map      [count] the component's place in the result plus 1, 0 for background; null: none.
/// Errors   kInvalidArgument where the volume is empty or has 2^31 voxels or more.
/// Cost     labels are read once, the map is written once; the rest, 16 bytes of memory each and
///          nearly linear in time, grows with the runs of equal labels along x, so with a
///          component's surface, not with its volume. Threads share the depths, 8 at a time; they
///          change nothing.
/// Source   Rosenfeld and Pfaltz, "Sequential operations in digital picture processing", 1966;
///          runs: He, Chao and Suzuki, "A run-based two-scan labeling algorithm", 2008.
std::vector<Component> connected_components(const VolumeShape& shape, const std::uint8_t* labels,
                                            Connectivity connectivity, std::int32_t* map = nullptr,
                                            const kernels::Spread& spread = kernels::on_caller);
std::vector<Component> connected_components(const VolumeShape& shape, const std::int32_t* labels,
                                            Connectivity connectivity, std::int32_t* map = nullptr,
                                            const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::volume
