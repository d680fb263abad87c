#pragma once

// Volumes with labels, and the components that a processor finds in them, for tests.

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "packs/volume/kernels/components.h"

namespace trireme::volume::cuda {

inline constexpr Connectivity kAllConnectivities[] = {Connectivity::kFaces, Connectivity::kEdges,
                                                      Connectivity::kCorners};

struct ComponentsResult {
  std::vector<Component> components;
  std::vector<std::int32_t> map;

  bool operator==(const ComponentsResult&) const = default;
};

template <typename Label>
struct ComponentsProblem {
  /// label_at   (z, y, x)
  ComponentsProblem(std::string name, const VolumeShape& shape,
                    const std::function<int(const Voxel&)>& label_at)
      : name(std::move(name)), shape(shape), labels(shape.count()) {
    for (std::int64_t v = 0; v < shape.count(); ++v) {
      labels[v] = static_cast<Label>(label_at(shape.voxel_at(v)));
    }
  }

  ComponentsResult solve(Connectivity connectivity) const {
    std::vector<std::int32_t> map(shape.count());
    auto components = volume::connected_components(shape, labels.data(), connectivity, map.data());
    return {std::move(components), std::move(map)};
  }

  std::string name;
  VolumeShape shape;
  std::vector<Label> labels;
};

/// Labels 1 to num_labels, or background.
template <typename Label>
ComponentsProblem<Label> random_labels(const VolumeShape& shape, int num_labels,
                                       double background) {
  std::mt19937 random(static_cast<unsigned>(shape.width + num_labels));
  std::uniform_real_distribution<> chance;
  return {std::to_string(num_labels) + " labels, " + std::to_string(background) + " background",
          shape, [&, num_labels, background](const Voxel&) {
            if (chance(random) < background) return 0;
            return 1 + static_cast<int>(random() % static_cast<unsigned>(num_labels));
          }};
}

/// A wall that winds inwards, one voxel thick, with a way of the other label beside it.
template <typename Label>
ComponentsProblem<Label> spiral(std::int64_t side) {
  std::vector<std::vector<int>> wall(side, std::vector<int>(side, 2));
  std::int64_t y = 0, x = 0, dy = 0, dx = 1;
  const auto is_free = [&](std::int64_t row, std::int64_t column) {
    return row >= 0 && row < side && column >= 0 && column < side && wall[row][column] == 2;
  };
  for (int turns = 0; turns < 2;) {
    wall[y][x] = 1;
    const bool goes_on =
        is_free(y + dy, x + dx) && (is_free(y + 2 * dy, x + 2 * dx) || y + 2 * dy < 0 ||
                                    y + 2 * dy >= side || x + 2 * dx < 0 || x + 2 * dx >= side);
    if (goes_on) {
      y += dy;
      x += dx;
      turns = 0;
      continue;
    }
    const std::int64_t old_dy = dy;
    dy = dx;
    dx = -old_dy;
    ++turns;
  }
  return {"spiral", {1, side, side}, [&](const Voxel& at) { return wall[at[1]][at[2]]; }};
}

/// Rows, joined at their ends by turns, and so are slices: one way through the whole volume.
template <typename Label>
ComponentsProblem<Label> snake(const VolumeShape& shape) {
  return {"snake", shape, [&](const Voxel& at) {
            const auto [z, y, x] = at;
            if (z % 2 == 1) return y == (z % 4 == 1 ? shape.height - 1 : 0) && x == 0 ? 1 : 0;
            if (y % 2 == 0) return 1;
            return x == (y % 4 == 1 ? shape.width - 1 : 0) ? 1 : 0;
          }};
}

/// Bars that meet in the last row only; slices do not. Many unions want the same root.
template <typename Label>
ComponentsProblem<Label> comb(const VolumeShape& shape) {
  return {"comb", shape, [&](const Voxel& at) {
            return at[0] % 2 == 0 && (at[2] % 2 == 0 || at[1] == shape.height - 1) ? 3 : 0;
          }};
}

template <typename Label>
std::vector<ComponentsProblem<Label>> components_problems() {
  using Problem = ComponentsProblem<Label>;
  std::vector<Problem> all;
  const auto filled = [](int label) { return [label](const Voxel&) { return label; }; };
  for (const VolumeShape& shape : {VolumeShape{1, 1, 1}, VolumeShape{1, 1, 300},
                                   VolumeShape{7, 1, 1}, VolumeShape{3, 5, 130}}) {
    all.push_back(Problem("empty", shape, filled(0)));
    all.push_back(Problem("full", shape, filled(200)));
  }
  all.push_back(Problem("one voxel", {3, 4, 70},
                        [](const Voxel& at) { return at == Voxel{1, 2, 65} ? 5 : 0; }));
  all.push_back(Problem("chess", {4, 5, 67},
                        [](const Voxel& at) { return (at[0] + at[1] + at[2]) % 2 == 0 ? 1 : 0; }));
  all.push_back(spiral<Label>(31));
  all.push_back(snake<Label>({5, 9, 150}));
  all.push_back(comb<Label>({2, 12, 131}));
  for (const std::int64_t width : {1, 2, 63, 64, 65, 130}) {
    for (const double background : {0.0, 0.3, 0.6, 0.95}) {
      for (const int num_labels : {1, 2, 40}) {
        all.push_back(random_labels<Label>({4, 5, width}, num_labels, background));
      }
    }
  }
  return all;
}

}  // namespace trireme::volume::cuda
