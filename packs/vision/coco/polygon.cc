#include "packs/vision/coco/polygon.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "trireme/error.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kScale = 5;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Toward zero: a C cast, as the judge has it.
std::int64_t cut_off(double x) { return static_cast<std::int64_t>(x); }

/// On the fine grid.
struct Vertex {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

std::int64_t on_grid(double coordinate) {
  constexpr double kLargest = 1e8;
  if (!(std::abs(coordinate) <= kLargest)) {
    throw Error(ErrorKind::kCorruptData,
                "expected coordinates of a polygon within 1e8, got " + std::to_string(coordinate));
  }
  return cut_off(kScale * coordinate + .5);
}

/// Collects where columns change between inside and outside, as positions of a mask.
class Crossings {
 public:
  explicit Crossings(ImageSize size) : size_(size) {}

  void add_edge(Vertex a, Vertex b) {
    const std::int64_t dx = std::abs(a.x - b.x), dy = std::abs(a.y - b.y);
    if (dx == 0) return;
    if (dx >= dy) {
      if (a.x > b.x) std::swap(a, b);
      add_flat(a, b);
    } else {
      if (a.y > b.y) std::swap(a, b);
      add_steep(a, b);
    }
  }

  Rle take() {
    std::ranges::sort(positions_);
    Rle rle{.size = size_};
    for (const std::uint32_t position : positions_) internal::toggle(rle.bounds, position);
    return rle;
  }

 private:
  /// Calls `add` for the columns whose middle is between two x of the fine grid.
  template <typename Add>
  void for_columns(std::int64_t low, std::int64_t high, Add add) const {
    const std::int64_t first = std::max<std::int64_t>(0, floor_div(low + 2, kScale));
    const std::int64_t last = std::min(size_.width - 1, floor_div(high - 3, kScale));
    for (std::int64_t column = first; column <= last; ++column) add(column);
  }

  /// One step of x for each point.
  void add_flat(Vertex from, Vertex to) {
    const double slope = static_cast<double>(to.y - from.y) / static_cast<double>(to.x - from.x);
    const auto y_at = [&](std::int64_t t) {
      return cut_off(static_cast<double>(from.y) + slope * static_cast<double>(t) + .5);
    };
    for_columns(from.x, to.x, [&](std::int64_t column) {
      const std::int64_t t = kScale * column + 2 - from.x;
      add(column, std::min(y_at(t), y_at(t + 1)));
    });
  }

  /// One step of y for each point: the first on the far side of a column's middle is looked for
  /// from where it would be in exact arithmetic.
  void add_steep(Vertex from, Vertex to) {
    const std::int64_t num_steps = to.y - from.y;
    const double slope = static_cast<double>(to.x - from.x) / static_cast<double>(num_steps);
    for_columns(std::min(from.x, to.x), std::max(from.x, to.x), [&](std::int64_t column) {
      const std::int64_t right = kScale * column + 3;
      const auto has_crossed = [&](std::int64_t t) {
        const std::int64_t x =
            cut_off(static_cast<double>(from.x) + slope * static_cast<double>(t) + .5);
        return (x >= right) == (slope > 0);
      };
      const double guess = (static_cast<double>(right - from.x) - .5) / slope;
      std::int64_t t = std::clamp(cut_off(guess), std::int64_t{1}, num_steps);
      while (t > 1 && has_crossed(t - 1)) --t;
      while (t < num_steps && !has_crossed(t)) ++t;
      add(column, from.y + t - 1);
    });
  }

  void add(std::int64_t column, std::int64_t y) {
    const std::int64_t row = std::clamp(floor_div(y + 2, kScale), std::int64_t{0}, size_.height);
    positions_.push_back(static_cast<std::uint32_t>(column * size_.height + row));
  }

  ImageSize size_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace

Rle from_polygon(ImageSize size, std::span<const double> xy) {
  internal::check_size(size);
  if (xy.size() < 4 || xy.size() % 2 != 0) {
    throw Error(ErrorKind::kCorruptData,
                "expected an even number of coordinates of a polygon, at least 4, got " +
                    std::to_string(xy.size()));
  }
  Crossings crossings(size);
  Vertex before{on_grid(xy[xy.size() - 2]), on_grid(xy[xy.size() - 1])};
  for (std::size_t i = 0; i < xy.size(); i += 2) {
    const Vertex vertex{on_grid(xy[i]), on_grid(xy[i + 1])};
    crossings.add_edge(before, vertex);
    before = vertex;
  }
  return crossings.take();
}

Rle from_box(ImageSize size, const Box& box) {
  const double right = box.x + box.width, bottom = box.y + box.height;
  const double corners[] = {box.x, box.y, box.x, bottom, right, bottom, right, box.y};
  return from_polygon(size, corners);
}

}  // namespace trireme::vision
