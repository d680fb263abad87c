#include "packs/vision/coco/overlaps.h"

#include <algorithm>

#include "trireme/kernels/simd.h"

namespace trireme::vision::internal {
namespace {

constexpr std::int64_t kSimdLanes = 8;

/// One annotation.
struct Target {
  double left, top, right, bottom, area;
  bool is_crowd;
};

/// sides [5][n], iou [n]; n a multiple of kSimdLanes. In the order of pycocotools' operations.
TRIREME_INLINE_LOOP void compare(const double* sides, std::int64_t n, const Target& target,
                                 double* iou) {
  const double* left = sides;
  const double* top = sides + n;
  const double* right = sides + 2 * n;
  const double* bottom = sides + 3 * n;
  const double* area = sides + 4 * n;
  TRIREME_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const double x_end = right[i] < target.right ? right[i] : target.right;
    const double x_begin = left[i] > target.left ? left[i] : target.left;
    const double y_end = bottom[i] < target.bottom ? bottom[i] : target.bottom;
    const double y_begin = top[i] > target.top ? top[i] : target.top;
    const double width = x_end - x_begin;
    const double height = y_end - y_begin;
    const double both = width * height;
    const double whole = target.is_crowd ? area[i] : area[i] + target.area - both;
    const double ratio = both / whole;
    iou[i] = width > 0 && height > 0 ? ratio : 0;
  }
}

void compare_portable(const double* sides, std::int64_t n, const Target& target, double* iou) {
  compare(sides, n, target, iou);
}
TRIREME_AVX2 void compare_avx2(const double* sides, std::int64_t n, const Target& target,
                               double* iou) {
  compare(sides, n, target, iou);
}
TRIREME_AVX512 void compare_avx512(const double* sides, std::int64_t n, const Target& target,
                                   double* iou) {
  compare(sides, n, target, iou);
}

Target target_of(const CocoGroundTruth& truth, std::int64_t i) {
  const Box& box = truth.boxes[i];
  return {box.x,
          box.y,
          box.x + box.width,
          box.y + box.height,
          box.width * box.height,
          truth.is_crowd[i] != 0};
}

/// The overlap of two masks, or 0 where even the smaller of them, or what their boxes share, would
/// not reach the lowest threshold: most pairs, without a look at their runs.
double compare_masks(const MaskList& a, std::int64_t i, const MaskList& b, std::int64_t j,
                     bool is_crowd) {
  const Box &p = a.box(i), &q = b.box(j);
  const double width = std::min(p.x + p.width, q.x + q.width) - std::max(p.x, q.x);
  const double height = std::min(p.y + p.height, q.y + q.height) - std::max(p.y, q.y);
  if (width <= 0 || height <= 0) return 0;
  const auto ratio = [&](double both) {
    return both / (is_crowd ? a.area(i) : a.area(i) + b.area(j) - both);
  };
  if (ratio(std::min({a.area(i), b.area(j), width * height})) < kIouThresholds[0]) return 0;
  return ratio(static_cast<double>(overlap(a.bounds(i), b.bounds(j))));
}

}  // namespace

void Overlaps::compute(std::span<const Found> found, std::int64_t begin, std::int64_t end) {
  stride_ = (std::ssize(found) + kSimdLanes - 1) / kSimdLanes * kSimdLanes;
  ious_.resize(stride_ * (end - begin));
  if (kind_ == CocoKind::kBox) {
    compare_boxes(found, begin, end);
  } else {
    compare_masks(found, begin, end);
  }
}

void Overlaps::compare_boxes(std::span<const Found> found, std::int64_t begin, std::int64_t end) {
  sides_.assign(5 * stride_, 0.0);
  for (std::int64_t d = 0; d < std::ssize(found); ++d) {
    const Box& box = detections_.boxes[found[d].index];
    sides_[d] = box.x;
    sides_[d + stride_] = box.y;
    sides_[d + 2 * stride_] = box.x + box.width;
    sides_[d + 3 * stride_] = box.y + box.height;
    sides_[d + 4 * stride_] = box.width * box.height;
  }
  const auto compare = kernels::has_avx512() ? compare_avx512
                       : kernels::has_avx2() ? compare_avx2
                                             : compare_portable;
  for (std::int64_t g = begin; g < end; ++g) {
    compare(sides_.data(), stride_, target_of(truth_, g), ious_.data() + (g - begin) * stride_);
  }
}

void Overlaps::compare_masks(std::span<const Found> found, std::int64_t begin, std::int64_t end) {
  for (std::int64_t g = begin; g < end; ++g) {
    for (std::int64_t d = 0; d < std::ssize(found); ++d) {
      ious_[(g - begin) * stride_ + d] = internal::compare_masks(
          detections_.masks, found[d].index, truth_.masks, g, truth_.is_crowd[g] != 0);
    }
  }
}

}  // namespace trireme::vision::internal
