#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "packs/volume/kernels/crop.h"
#include "tests/packs/volume/reference/components.h"
#include "trireme/base/random.h"

namespace trireme::volume::reference {

/// As kernels::find_foreground: a pass over the volume for each component.
template <typename Label>
Foreground find_foreground(const CropOptions& options, const VolumeShape& shape,
                           const std::vector<Label>& labels) {
  const auto map = component_map(shape, labels, options.connectivity);
  const auto component = [&](std::int32_t number) {
    Component found{.box = {shape.sides(), {}}};
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      if (map[i] != number) continue;
      found.label = static_cast<std::int32_t>(labels[i]);
      ++found.size;
      for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t place = shape.voxel_at(i)[axis];
        found.box.begin[axis] = std::min(found.box.begin[axis], place);
        found.box.end[axis] = std::max(found.box.end[axis], place + 1);
      }
    }
    return found;
  };
  const auto volume = [](const Component& one) {
    const auto& [begin, end] = one.box;
    return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
  };
  Foreground foreground{shape, {}};
  for (const Label label : std::set<Label>(labels.begin(), labels.end())) {
    if (label == 0) continue;
    std::vector<Component> objects;
    for (std::int32_t number = 1; number <= *std::ranges::max_element(map); ++number) {
      const Component one = component(number);
      if (one.label == static_cast<std::int32_t>(label)) objects.push_back(one);
    }
    std::ranges::stable_sort(objects, std::ranges::greater(), volume);
    if (std::ssize(objects) > options.num_objects) objects.resize(options.num_objects);
    foreground.classes.push_back({static_cast<std::int32_t>(label), objects});
  }
  return foreground;
}

/// As kernels::choose_crop: of all places along an axis those that are allowed, and of these one.
inline Crop choose_crop(const CropOptions& options, const Foreground& foreground,
                        std::uint64_t seed, std::uint64_t sample_index) {
  const std::uint64_t key = stream_seed(seed, {0x63726F70});  // "crop"
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  std::uint32_t num_drawn = 0;
  const auto word = [&] {
    const std::uint32_t block = num_drawn / 4, place = num_drawn % 4;
    ++num_drawn;
    return std::uint64_t{philox({low(sample_index), low(sample_index >> 32), block, 0},
                                {low(key), low(key >> 32)})[place]};
  };
  const auto one_of = [&](const auto& all) { return all[word() * all.size() >> 32]; };
  Crop crop;
  VolumeBox box{{}, foreground.shape.sides()};
  const double share = static_cast<double>(word()) / 0x1p32;
  if (share < options.foreground_share && !foreground.classes.empty()) {
    const Foreground::Class chosen = one_of(foreground.classes);
    crop.label = chosen.label;
    box = one_of(chosen.objects).box;
  }
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t patch = options.patch.sides()[axis];
    std::vector<std::int64_t> allowed;
    for (std::int64_t begin = 0; begin + patch <= foreground.shape.sides()[axis]; ++begin) {
      const std::int64_t before = box.begin[axis] - begin;
      const std::int64_t behind = begin + patch - box.end[axis];
      const bool contains_it = before >= 0 && behind >= 0;
      const bool lies_within = before <= 0 && behind <= 0;
      if (contains_it || lies_within) allowed.push_back(begin);
    }
    crop.begin[axis] = one_of(allowed);
  }
  return crop;
}

}  // namespace trireme::volume::reference
