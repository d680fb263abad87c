#include "packs/volume/kernels/components.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

// Each row is cut into runs of one label. A row's runs are joined with those that they touch in the
// rows before it: (z, y - 1) and three rows of z - 1, each time two sorted lists side by side.
//
//     row y - 1   ..111..22.....     The 1s touch: they share an x. The 2s touch only where the
//     step row y       ....11..33222.     to the next row and one along x make neighbours: reach 1.
//
// A union makes the earlier run the root, so roots come in the order of first voxels. Threads take
// slabs of depths: runs of a slab are cut and joined by themselves, then slabs are put behind each
// other and joined where they meet. Which runs are one component, and its first, is always the same.

namespace trireme::volume {
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

/// Depths whose runs a thread cuts at a time.
constexpr std::int64_t kSlab = 8;

/// Voxels that threads are made for: some 100 us.
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 20;

/// The runs of a volume, or of a slab of it.
struct Runs {
  std::vector<Run> all;
  std::vector<std::int64_t> first;  ///< Of each row, and the end of all.

  /// Puts those of the next slab behind.
  void append(const Runs& next) {
    const auto offset = static_cast<std::int32_t>(all.size());
    if (!first.empty()) first.pop_back();
    for (const std::int64_t begin : next.first) first.push_back(begin + offset);
    for (Run run : next.all) {
      run.parent += offset;
      all.push_back(run);
    }
  }
};

/// Cuts rows into runs.
template <typename Label>
void cut_row(const Label* row, std::int64_t width, std::vector<Run>& runs) {
  for (std::int64_t x = end_of(row, 0, width, Label{0}); x < width;) {
    const std::int64_t end = end_of(row, x, width, row[x]);
    runs.push_back({static_cast<std::int32_t>(row[x]), static_cast<std::int32_t>(x),
                    static_cast<std::int32_t>(end), static_cast<std::int32_t>(runs.size())});
    x = end < width && row[end] == 0 ? end_of(row, end, width, Label{0}) : end;
  }
}

/// Joins runs that touch. Rows are those of `runs`, whose first depth is 0.
class Joiner {
 public:
  Joiner(const VolumeShape& shape, Connectivity connectivity, Runs& runs)
      : shape_(shape), connectivity_(connectivity), first_(runs.first), runs_(runs.all) {}

  /// The runs of a row with those of the row before it at the same depth.
  void join_before(std::int64_t z, std::int64_t y) {
    if (y > 0) join_rows(row(z, y - 1), row(z, y), along());
  }

  /// The runs of a row with those at the depth before it.
  void join_above(std::int64_t z, std::int64_t y) {
    const int across = connectivity_ == Connectivity::kCorners ? 1 : 0;
    if (z == 0) return;
    if (along() > 0 && y > 0) join_rows(row(z - 1, y - 1), row(z, y), across);
    join_rows(row(z - 1, y), row(z, y), along());
    if (along() > 0 && y + 1 < shape_.height) join_rows(row(z - 1, y + 1), row(z, y), across);
  }

 private:
  std::int64_t row(std::int64_t z, std::int64_t y) const { return z * shape_.height + y; }
  int along() const { return connectivity_ == Connectivity::kFaces ? 0 : 1; }

  /// reach   0: runs touch where they share an x; 1: also one beside it.
  void join_rows(std::int64_t before, std::int64_t row, int reach) {
    std::int64_t a = first_[before], b = first_[row];
    const std::int64_t a_end = first_[before + 1], b_end = first_[row + 1];
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

  const VolumeShape& shape_;
  const Connectivity connectivity_;
  const std::vector<std::int64_t>& first_;
  std::vector<Run>& runs_;
};

/// Of the depths [begin, end), joined among themselves.
template <typename Label>
Runs runs_of_slab(const VolumeShape& shape, const Label* labels, Connectivity connectivity,
                  std::int64_t begin, std::int64_t end) {
  Runs runs;
  runs.first.reserve((end - begin) * shape.height + 1);
  runs.first.push_back(0);
  Joiner joiner(shape, connectivity, runs);
  for (std::int64_t z = begin; z < end; ++z) {
    for (std::int64_t y = 0; y < shape.height; ++y) {
      cut_row(labels + (z * shape.height + y) * shape.width, shape.width, runs.all);
      runs.first.push_back(std::ssize(runs.all));
      if (runs.first.end()[-1] == runs.first.end()[-2]) continue;
      joiner.join_before(z - begin, y);
      joiner.join_above(z - begin, y);
    }
  }
  return runs;
}

template <typename Label>
Runs joined_runs(const VolumeShape& shape, const Label* labels, Connectivity connectivity,
                 const kernels::Spread& spread) {
  const std::int64_t num_slabs = (shape.depth + kSlab - 1) / kSlab;
  std::vector<Runs> slabs(num_slabs);
  kernels::spread_or_caller(spread, shape.count(), kWorthThreads)(
      num_slabs, [&](std::int64_t slab) {
        slabs[slab] = runs_of_slab(shape, labels, connectivity, slab * kSlab,
                                   std::min((slab + 1) * kSlab, shape.depth));
      });
  std::size_t num_runs = 0;
  for (const Runs& slab : slabs) num_runs += slab.all.size();
  Runs runs = std::move(slabs[0]);
  runs.all.reserve(num_runs);
  for (std::int64_t slab = 1; slab < num_slabs; ++slab) {
    runs.append(std::exchange(slabs[slab], {}));
    Joiner joiner(shape, connectivity, runs);
    for (std::int64_t y = 0; y < shape.height; ++y) joiner.join_above(slab * kSlab, y);
  }
  return runs;
}

void add(const Run& run, std::int64_t z, std::int64_t y, Component& component) {
  auto& [begin, end] = component.box;
  component.size += run.end - run.begin;
  begin = {begin[0], std::min(begin[1], y), std::min<std::int64_t>(begin[2], run.begin)};
  end = {z + 1, std::max(end[1], y + 1), std::max<std::int64_t>(end[2], run.end)};
}

/// Adds up the runs, which then hold their component's place instead of a parent.
std::vector<Component> count(const VolumeShape& shape, Runs& runs) {
  std::vector<Component> components;
  for (std::int64_t row = 0; row + 1 < std::ssize(runs.first); ++row) {
    const std::int64_t z = row / shape.height, y = row % shape.height;
    for (std::int64_t i = runs.first[row]; i < runs.first[row + 1]; ++i) {
      const Run run = runs.all[i];
      const bool is_first = run.parent == i;
      const std::int32_t place =
          is_first ? static_cast<std::int32_t>(components.size()) : runs.all[run.parent].parent;
      runs.all[i].parent = place;
      if (is_first) components.push_back({run.label, 0, {{z, y, run.begin}, {z, y, run.end}}});
      add(run, z, y, components[place]);
    }
  }
  return components;
}

void write_map(const VolumeShape& shape, const Runs& runs, std::int32_t* map,
               const kernels::Spread& spread) {
  kernels::spread_or_caller(spread, shape.count(), kWorthThreads)(shape.depth, [&](std::int64_t z) {
    for (std::int64_t row = z * shape.height; row < (z + 1) * shape.height; ++row) {
      std::int32_t* out = map + row * shape.width;
      std::int32_t written = 0;
      for (std::int64_t i = runs.first[row]; i < runs.first[row + 1]; ++i) {
        const Run& run = runs.all[i];
        std::fill(out + written, out + run.begin, 0);
        std::fill(out + run.begin, out + run.end, run.parent + 1);
        written = run.end;
      }
      std::fill(out + written, out + shape.width, 0);
    }
  });
}

template <typename Label>
std::vector<Component> find_components(const VolumeShape& shape, const Label* labels,
                                       Connectivity connectivity, std::int32_t* map,
                                       const kernels::Spread& spread) {
  check_shape("connected components: the volume", shape, std::numeric_limits<std::int32_t>::max());
  Runs runs = joined_runs(shape, labels, connectivity, spread);
  std::vector<Component> components = count(shape, runs);
  if (map != nullptr) write_map(shape, runs, map, spread);
  return components;
}

}  // namespace

std::vector<Component> connected_components(const VolumeShape& shape, const std::uint8_t* labels,
                                            Connectivity connectivity, std::int32_t* map,
                                            const kernels::Spread& spread) {
  return find_components(shape, labels, connectivity, map, spread);
}

std::vector<Component> connected_components(const VolumeShape& shape, const std::int32_t* labels,
                                            Connectivity connectivity, std::int32_t* map,
                                            const kernels::Spread& spread) {
  return find_components(shape, labels, connectivity, map, spread);
}

}  // namespace trireme::volume
