#pragma once

// The passes of components.h: union-find over voxels, of which all are at work at once.
//
// A voxel has a parent: an earlier voxel of its component, or itself, which makes it a root. Two
// voxels that touch are united: of their roots the later one gets the earlier one as its parent.
//
//     labels   1 1 . 1       parents   0 0 . 3     Runs along x start with one parent. 5 touches 1,
//              . 1 1 1       at first  . 5 5 5     and 7 touches 3.
//
//     5 and 1 first: 5 gets 0; then 7 and 3, whose roots are 0 and 3: 3 gets 0.
//     7 and 3 first: 5 gets 3; then 5 and 1, whose roots are 3 and 0: 3 gets 0.
//
// Whatever the order, a component ends with one root, its first voxel: parents are never later.
// Roots are then numbered from the first to the last, which is the processors' order.
//
// Races: a union gives a parent to roots only, by a compare and swap, which fails where another
// thread was faster; then what that one has put there is united instead. A voxel on the way to a
// root may be given a grandparent, so that ways stay short. It is of the same tree whenever it is
// written, so it is no harm where threads overwrite each other's.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "packs/volume/cuda/components.h"
#include "trireme/kernels/cuda/atomics.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/cuda/prefix_passes.h"

namespace trireme::volume::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

struct ComponentsSpace {
  ComponentsSpace(Cutter cutter, const VolumeShape& shape)
      : parents(cutter.take<std::int32_t>(shape.count())),
        roots(cutter, shape.count()),
        bytes(roots.bytes) {}

  std::int32_t* parents;  ///< [voxels] of those that are not background; later ~number of roots.
  PrefixSpace roots;
  std::int64_t bytes;
};

/// Labels, cut into runs along x. A run has kRunPart voxels at most, so no thread goes far.
template <typename Label>
struct LabelRuns {
  static constexpr std::int64_t kRunPart = 64;

  std::int64_t width;
  const Label* labels;

  /// Whether voxel v, at x of its row and not background, is the first one of a run.
  TRIREME_HOST_DEVICE bool is_first(std::int64_t v, std::int64_t x) const {
    return x % kRunPart == 0 || labels[v - 1] != labels[v];
  }

  TRIREME_HOST_DEVICE std::int64_t length_from(std::int64_t v, std::int64_t x) const {
    std::int64_t most = kRunPart - x % kRunPart;
    if (width - x < most) most = width - x;
    std::int64_t length = 1;
    while (length < most && labels[v + length] == labels[v]) ++length;
    return length;
  }
};

template <typename Label>
struct StartRuns {
  LabelRuns<Label> runs;
  std::int32_t* parents;

  TRIREME_HOST_DEVICE void operator()(std::int64_t v) const {
    if (runs.labels[v] == 0) return;
    const std::int64_t x = divide(v, runs.width).rest;
    if (!runs.is_first(v, x)) return;
    const std::int64_t length = runs.length_from(v, x);
    for (std::int64_t i = 0; i < length; ++i) parents[v + i] = static_cast<std::int32_t>(v);
  }
};

/// Parents that change while they are read.
struct UnionFind {
  std::int32_t* parents;

  TRIREME_HOST_DEVICE std::int32_t root_of(std::int32_t v) const {
    std::int32_t parent = load_relaxed(parents + v);
    while (parent != v) {
      const std::int32_t grandparent = load_relaxed(parents + parent);
      if (grandparent != parent) store_relaxed(parents + v, grandparent);
      v = parent;
      parent = grandparent;
    }
    return v;
  }

  TRIREME_HOST_DEVICE void unite(std::int64_t a, std::int64_t b) const {
    auto later = static_cast<std::int32_t>(a), earlier = static_cast<std::int32_t>(b);
    while (true) {
      const std::int32_t i = root_of(later), j = root_of(earlier);
      if (i == j) return;
      later = i < j ? j : i;
      earlier = i < j ? i : j;
      const std::int32_t found = compare_and_swap(parents + later, later, earlier);
      if (found == later) return;
      later = found;  // no root any more: what has become its parent
    }
  }
};

/// A voxel with those that it touches and that are before it, as the processors' kernel joins rows.
/// Of the contacts of two runs the first along x will do.
template <typename Label>
struct JoinVoxel {
  VolumeShape shape;
  LabelRuns<Label> runs;
  Connectivity connectivity;
  UnionFind sets;

  TRIREME_HOST_DEVICE void operator()(std::int64_t v) const {
    const Label* own = runs.labels + v;
    if (*own == 0) return;
    const auto [row, x] = divide(v, shape.width);
    const auto [z, y] = divide(row, shape.height);
    const bool has_edges = connectivity != Connectivity::kFaces;
    const bool has_corners = connectivity == Connectivity::kCorners;
    const std::int64_t slice = shape.height * shape.width;
    if (x > 0 && own[-1] == *own && runs.is_first(v, x)) sets.unite(v, v - 1);
    if (y > 0) join_row(v, x, shape.width, has_edges);
    if (z == 0) return;
    if (has_edges && y > 0) join_row(v, x, slice + shape.width, has_corners);
    join_row(v, x, slice, has_edges);
    if (has_edges && y + 1 < shape.height) join_row(v, x, slice - shape.width, has_corners);
  }

  /// With the row that is `back` voxels before; `reaches` one beside it along x too.
  TRIREME_HOST_DEVICE void join_row(std::int64_t v, std::int64_t x, std::int64_t back,
                                    bool reaches) const {
    const Label* own = runs.labels + v;
    const Label* other = own - back;
    const bool has_left = x > 0, has_right = x + 1 < shape.width;
    const bool goes_on_left = has_left && own[-1] == *own;
    if (*other == *own) {
      const bool is_first_contact = !goes_on_left || other[-1] != *own;
      if (is_first_contact) sets.unite(v, v - back);
      return;
    }
    if (!reaches) return;
    // Where this run goes on to that side, it has a contact there that is no diagonal.
    if (has_left && !goes_on_left && other[-1] == *own) sets.unite(v, v - back - 1);
    if (has_right && own[1] != *own && other[1] == *own) sets.unite(v, v - back + 1);
  }
};

template <typename Label>
struct IsRoot {
  const Label* labels;
  const std::int32_t* parents;

  TRIREME_HOST_DEVICE bool operator()(std::int64_t v) const {
    return labels[v] != 0 && parents[v] == v;
  }
};

/// The roots of a part get their numbers, and components for them begin with no voxels. Index
/// num_parts writes the count.
template <typename Label>
struct NumberRoots {
  VolumeShape shape;
  IsRoot<Label> is_root;
  ComponentsSpace space;
  ComponentsFound found;

  TRIREME_HOST_DEVICE void operator()(std::int64_t part) const {
    std::int64_t number = space.roots.before[part];
    if (part == space.roots.num_parts) {
      *found.count = number;
      return;
    }
    for (std::int64_t v = space.roots.begin_of(part); v < space.roots.end_of(part); ++v) {
      if (!is_root(v)) continue;
      space.parents[v] = static_cast<std::int32_t>(~number);
      if (number < found.most) begin(v, found.components[number]);
      ++number;
    }
  }

  TRIREME_HOST_DEVICE void begin(std::int64_t v, Component& component) const {
    const auto [row, x] = divide(v, shape.width);
    const auto [z, y] = divide(row, shape.height);
    component.label = static_cast<std::int32_t>(is_root.labels[v]);
    component.size = 0;
    component.box.begin = {z, y, x};
    component.box.end = {z, y, x};
  }
};

/// A voxel's place in the map; the first voxel of a run adds it to its component.
template <typename Label>
struct AddVoxel {
  VolumeShape shape;
  LabelRuns<Label> runs;
  const std::int32_t* parents;
  ComponentsFound found;

  TRIREME_HOST_DEVICE void operator()(std::int64_t v) const {
    const bool is_background = runs.labels[v] == 0;
    const std::int32_t number = is_background ? -1 : number_of(parents[v]);
    if (found.map != nullptr) found.map[v] = number + 1;
    if (is_background || number >= found.most) return;
    const auto [row, x] = divide(v, shape.width);
    if (runs.is_first(v, x)) add(v, row, x, found.components[number]);
  }

  TRIREME_HOST_DEVICE std::int32_t number_of(std::int32_t parent) const {
    while (parent >= 0) parent = parents[parent];
    return ~parent;
  }

  /// The first voxel of a component has its lowest z.
  TRIREME_HOST_DEVICE void add(std::int64_t v, std::int64_t row, std::int64_t x,
                               Component& component) const {
    const auto [z, y] = divide(row, shape.height);
    const std::int64_t length = runs.length_from(v, x);
    auto& [begin, end] = component.box;
    add_to(&component.size, length);
    lower_to(&begin[1], y);
    lower_to(&begin[2], x);
    raise_to(&end[0], z + 1);
    raise_to(&end[1], y + 1);
    raise_to(&end[2], x + length);
  }
};

template <typename Label, typename Each>
void components_passes(const VolumeShape& shape, const Label* labels, Connectivity connectivity,
                       const ComponentsFound& found, std::span<std::byte> workspace,
                       const Each& each) {
  check_shape("connected components: the volume", shape, std::numeric_limits<std::int32_t>::max());
  const ComponentsSpace space(Cutter(workspace), shape);
  check_workspace("connected_components", workspace, space.bytes);
  const std::int64_t n = shape.count();
  const LabelRuns<Label> runs{shape.width, labels};
  const IsRoot<Label> is_root{labels, space.parents};
  each(n, StartRuns<Label>{runs, space.parents});
  each(n, JoinVoxel<Label>{shape, runs, connectivity, {space.parents}});
  count_before_passes(is_root, space.roots, each);
  each(space.roots.num_parts + 1, NumberRoots<Label>{shape, is_root, space, found});
  each(n, AddVoxel<Label>{shape, runs, space.parents, found});
}

}  // namespace trireme::volume::cuda::internal
