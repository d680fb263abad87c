#pragma once

#include <cstdlib>
#include <vector>

#include "packs/volume/kernels/components.h"

namespace trireme::volume::reference {

/// The map of connected components, each flooded from its first voxel.
template <typename Label>
std::vector<std::int32_t> component_map(const VolumeShape& shape, const std::vector<Label>& labels,
                                        Connectivity connectivity) {
  const int most_steps = connectivity == Connectivity::kFaces   ? 1
                         : connectivity == Connectivity::kEdges ? 2
                                                                : 3;
  std::vector<std::int32_t> map(shape.count(), 0);
  const auto flood = [&](std::int64_t first, std::int32_t number) {
    std::vector<std::int64_t> open = {first};
    map[first] = number;
    while (!open.empty()) {
      const std::int64_t voxel = open.back();
      open.pop_back();
      for (int step = 0; step < 27; ++step) {
        const int dz = step / 9 - 1, dy = step / 3 % 3 - 1, dx = step % 3 - 1;
        auto [z, y, x] = shape.voxel_at(voxel);
        z += dz, y += dy, x += dx;
        const bool is_inside =
            z >= 0 && z < shape.depth && y >= 0 && y < shape.height && x >= 0 && x < shape.width;
        if (std::abs(dz) + std::abs(dy) + std::abs(dx) > most_steps || !is_inside) continue;
        const std::int64_t other = (z * shape.height + y) * shape.width + x;
        if (labels[other] != labels[voxel] || map[other] != 0) continue;
        map[other] = number;
        open.push_back(other);
      }
    }
  };
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    if (labels[i] != 0 && map[i] == 0) flood(i, ++count);
  }
  return map;
}

}  // namespace trireme::volume::reference
