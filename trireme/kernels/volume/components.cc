#include "trireme/kernels/volume/components.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

// Each row is cut into runs of one label. A row's runs are joined with those that they touch in the
// rows before it: (z, y - 1) and three rows of z - 1, each time two sorted lists side by side.
//
//     row y - 1   ..111..22.....     The 1s touch: they share an x. The 2s touch only where the
//     step row y       ....11..33222.     to the next row and one along x make neighbours: reach 1.
//
// A union makes the earlier run the root, so roots come in the order of first voxels.

namespace trireme::kernels {
namespace {

struct Run {
  std::int32_t label;
  std::int32_t begin;  ///< x
  std::int32_t end;
  std::int32_t parent;  ///< A run of the same component, not after this one.
};

/// Where, from x on, a row's voxels stop to be `label`. By words, since most runs are short; after
/// each that is equal, eight at a time.
template <typename Label>
std::int64_t end_of(const Label* row, std::int64_t x, std::int64_t width, Label label) {
  constexpr std::int64_t kInWord = sizeof(std::uint64_t) / sizeof(Label);
  std::array<Label, kInWord> repeated;
  repeated.fill(label);
  const auto pattern = std::bit_cast<std::uint64_t>(repeated);
  const auto differing = [&](std::int64_t at) {
    std::uint64_t word;
    std::memcpy(&word, row + at, sizeof word);
    return word ^ pattern;
  };
  for (; x + kInWord <= width; x += kInWord) {
    if (const std::uint64_t bits = differing(x); bits != 0) {
      return x + std::countr_zero(bits) / (8 * sizeof(Label));
    }
    for (; x + 9 * kInWord <= width; x += 8 * kInWord) {
      std::uint64_t any = 0;
      for (int word = 1; word <= 8; ++word) any |= differing(x + word * kInWord);
      if (any != 0) break;
    }
  }
  while (x < width && row[x] == label) ++x;
  return x;
}

template <typename Label>
class Components {
 public:
  Components(const VolumeShape& shape, const Label* labels, Connectivity connectivity)
      : shape_(shape), labels_(labels), connectivity_(connectivity) {
    first_runs_.reserve(shape.depth * shape.height + 1);
  }

  std::vector<Component> find(std::int32_t* map) {
    for (std::int64_t z = 0; z < shape_.depth; ++z) {
      for (std::int64_t y = 0; y < shape_.height; ++y) {
        first_runs_.push_back(std::ssize(runs_));
        cut(labels_ + (z * shape_.height + y) * shape_.width);
        if (std::ssize(runs_) > first_runs_.back()) join(z, y);
      }
    }
    first_runs_.push_back(std::ssize(runs_));
    return count(map);
  }

 private:
  void cut(const Label* row) {
    for (std::int64_t x = end_of(row, 0, shape_.width, Label{0}); x < shape_.width;) {
      const std::int64_t end = end_of(row, x, shape_.width, row[x]);
      runs_.push_back({static_cast<std::int32_t>(row[x]), static_cast<std::int32_t>(x),
                       static_cast<std::int32_t>(end), static_cast<std::int32_t>(runs_.size())});
      x = end < shape_.width && row[end] == 0 ? end_of(row, end, shape_.width, Label{0}) : end;
    }
  }

  /// The last row's runs with those of the rows before it.
  void join(std::int64_t z, std::int64_t y) {
    const bool has_edges = connectivity_ != Connectivity::kFaces;
    const int along = has_edges ? 1 : 0;
    const int across = connectivity_ == Connectivity::kCorners ? 1 : 0;
    const std::int64_t row = z * shape_.height + y, above = row - shape_.height;
    if (y > 0) join_rows(row - 1, along);
    if (z == 0) return;
    if (has_edges && y > 0) join_rows(above - 1, across);
    join_rows(above, along);
    if (has_edges && y + 1 < shape_.height) join_rows(above + 1, across);
  }

  /// reach   0: runs touch where they share an x; 1: also one beside it.
  void join_rows(std::int64_t row, int reach) {
    std::int64_t a = first_runs_[row], b = first_runs_.back();
    const std::int64_t a_end = first_runs_[row + 1], b_end = std::ssize(runs_);
    while (a < a_end && b < b_end) {
      unite_if_touching(a, b, reach);
      if (runs_[a].end > runs_[b].end) {
        ++b;
        continue;
      }
      // Ends that are equal: a may reach the next b, and b the next a.
      if (reach > 0 && runs_[a].end == runs_[b].end && b + 1 < b_end) {
        unite_if_touching(a, b + 1, reach);
      }
      ++a;
    }
  }

  void unite_if_touching(std::int64_t a, std::int64_t b, int reach) {
    const Run &p = runs_[a], &q = runs_[b];
    if (p.label != q.label || p.begin >= q.end + reach || q.begin >= p.end + reach) return;
    if (p.parent == q.parent) return;
    const std::int32_t i = root_of(p.parent), j = root_of(q.parent);
    runs_[std::max(i, j)].parent = std::min(i, j);
  }

  std::int32_t root_of(std::int32_t i) {
    while (runs_[i].parent != i) {
      runs_[i].parent = runs_[runs_[i].parent].parent;
      i = runs_[i].parent;
    }
    return i;
  }

  /// Adds up the runs. Earlier runs hold their component's place instead of a parent by then.
  std::vector<Component> count(std::int32_t* map) {
    std::vector<Component> components;
    for (std::int64_t row = 0; row + 1 < std::ssize(first_runs_); ++row) {
      const std::int64_t z = row / shape_.height, y = row % shape_.height;
      std::int32_t* out = map == nullptr ? nullptr : map + row * shape_.width;
      std::int32_t written = 0;
      for (std::int64_t i = first_runs_[row]; i < first_runs_[row + 1]; ++i) {
        const Run run = runs_[i];
        const bool is_first = run.parent == i;
        const std::int32_t place =
            is_first ? static_cast<std::int32_t>(components.size()) : runs_[run.parent].parent;
        runs_[i].parent = place;
        if (is_first) components.push_back({run.label, 0, {{z, y, run.begin}, {z, y, run.end}}});
        add(run, z, y, components[place]);
        if (out == nullptr) continue;
        std::fill(out + written, out + run.begin, 0);
        std::fill(out + run.begin, out + run.end, place + 1);
        written = run.end;
      }
      if (out != nullptr) std::fill(out + written, out + shape_.width, 0);
    }
    return components;
  }

  static void add(const Run& run, std::int64_t z, std::int64_t y, Component& component) {
    auto& [begin, end] = component.box;
    component.size += run.end - run.begin;
    begin = {begin[0], std::min(begin[1], y), std::min<std::int64_t>(begin[2], run.begin)};
    end = {z + 1, std::max(end[1], y + 1), std::max<std::int64_t>(end[2], run.end)};
  }

  const VolumeShape shape_;
  const Label* const labels_;
  const Connectivity connectivity_;
  std::vector<Run> runs_;
  std::vector<std::int64_t> first_runs_;  ///< Of each row, and the end of all.
};

template <typename Label>
std::vector<Component> find_components(const VolumeShape& shape, const Label* labels,
                                       Connectivity connectivity, std::int32_t* map) {
  check_shape("connected components: the volume", shape, std::numeric_limits<std::int32_t>::max());
  return Components<Label>(shape, labels, connectivity).find(map);
}

}  // namespace

std::vector<Component> connected_components(const VolumeShape& shape, const std::uint8_t* labels,
                                            Connectivity connectivity, std::int32_t* map) {
  return find_components(shape, labels, connectivity, map);
}

std::vector<Component> connected_components(const VolumeShape& shape, const std::int32_t* labels,
                                            Connectivity connectivity, std::int32_t* map) {
  return find_components(shape, labels, connectivity, map);
}

}  // namespace trireme::kernels
