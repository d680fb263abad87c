#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/vision/coco/rle.h"

namespace trireme::vision {

/// Many masks behind each other in memory, with what comparing them asks for first.
///
/// Caller-synchronised while masks are added, then immutable.
class MaskList {
 public:
  void add(const Rle& mask);

  std::int64_t size() const { return std::ssize(areas_); }
  std::span<const std::uint32_t> bounds(std::int64_t i) const {
    return std::span(bounds_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  double area(std::int64_t i) const { return areas_[i]; }
  const Box& box(std::int64_t i) const { return boxes_[i]; }

 private:
  std::vector<std::uint32_t> bounds_;
  std::vector<std::size_t> begin_ = {0};
  std::vector<double> areas_;
  std::vector<Box> boxes_;
};

/// How much each pair of masks of one size overlaps, as pycocotools.mask.iou: |a and b| / |a or b|,
/// or / |a| where b is a crowd. 0 where nothing overlaps.
///
/// is_crowd   of each of b.
/// Returns    [a][b].
/// Errors     kInvalidArgument where sizes differ.
std::vector<double> iou(std::span<const Rle> a, std::span<const Rle> b,
                        std::span<const std::uint8_t> is_crowd);

}  // namespace trireme::vision
