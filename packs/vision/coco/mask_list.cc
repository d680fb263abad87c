#include "packs/vision/coco/mask_list.h"

#include <string>

#include "trireme/error.h"

namespace trireme::vision {

void MaskList::add(const Rle& mask) {
  bounds_.insert(bounds_.end(), mask.bounds.begin(), mask.bounds.end());
  begin_.push_back(bounds_.size());
  areas_.push_back(static_cast<double>(internal::area(mask.bounds)));
  boxes_.push_back(internal::bounding_box(mask.size.height, mask.bounds));
}

std::vector<double> iou(std::span<const Rle> a, std::span<const Rle> b,
                        std::span<const std::uint8_t> is_crowd) {
  if (is_crowd.size() != b.size()) {
    throw Error(ErrorKind::kInvalidArgument, "expected " + std::to_string(b.size()) +
                                                 " crowd flags, got " +
                                                 std::to_string(is_crowd.size()));
  }
  std::vector<double> result;
  result.reserve(a.size() * b.size());
  for (const Rle& one : a) {
    const std::int64_t one_area = area(one);
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (one.size != b[j].size) {
        throw Error(
            ErrorKind::kInvalidArgument,
            "mask " + std::to_string(j) + " has another size than those it is compared with");
      }
      const std::int64_t both = internal::overlap(one.bounds, b[j].bounds);
      const std::int64_t whole = is_crowd[j] != 0 ? one_area : one_area + area(b[j]) - both;
      result.push_back(both == 0 ? 0 : static_cast<double>(both) / static_cast<double>(whole));
    }
  }
  return result;
}

}  // namespace trireme::vision
