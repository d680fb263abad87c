#include "packs/vision/evaluation/coco_truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include "trireme/error.h"

namespace trireme::metrics {
namespace {

/// Ground truth of these images, without annotations.
///
/// image_ids   ascending.
vision::CocoGroundTruth empty_truth(const std::vector<std::int64_t>& image_ids) {
  vision::CocoGroundTruth truth;
  truth.image_ids = image_ids;
  truth.image_sizes.resize(image_ids.size());
  truth.category_begin = {0};
  return truth;
}

/// Annotation i of `all`, on another position of an image.
void add_annotation(const vision::CocoGroundTruth& all, std::size_t i, std::int32_t image,
                    vision::CocoGroundTruth& truth) {
  truth.images.push_back(image);
  truth.ids.push_back(all.ids[i]);
  truth.boxes.push_back(all.boxes[i]);
  truth.areas.push_back(all.areas[i]);
  truth.is_crowd.push_back(all.is_crowd[i]);
  if (!all.has_masks) return;
  const auto bounds = all.masks.bounds(static_cast<std::int64_t>(i));
  truth.masks.add(
      {truth.image_sizes[static_cast<std::size_t>(image)], {bounds.begin(), bounds.end()}});
}

}  // namespace

void refuse_precision(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "metrics: average_precision: " + what);
}

vision::CocoGroundTruth truth_of(std::vector<TrueObject> objects, std::int64_t num_images,
                                 vision::ImageSize size) {
  std::vector<std::int64_t> image_ids(static_cast<std::size_t>(num_images));
  std::iota(image_ids.begin(), image_ids.end(), 0);
  vision::CocoGroundTruth truth = empty_truth(image_ids);
  std::ranges::fill(truth.image_sizes, size);
  truth.has_masks = size.num_pixels() > 0;
  std::ranges::stable_sort(
      objects, {}, [](const TrueObject& each) { return std::tuple(each.category, each.image); });
  for (const auto& [category, image, box, mask] : objects) {
    if (truth.category_ids.empty() || truth.category_ids.back() != category) {
      truth.category_ids.push_back(category);
      truth.category_names.push_back(std::to_string(category));
      truth.category_begin.push_back(truth.category_begin.back());
    }
    ++truth.category_begin.back();
    truth.images.push_back(static_cast<std::int32_t>(image));
    truth.ids.push_back(std::ssize(truth.ids) + 1);
    truth.boxes.push_back(box);
    truth.areas.push_back(mask ? static_cast<double>(vision::area(*mask)) : box.width * box.height);
    truth.is_crowd.push_back(0);
    if (mask) truth.masks.add(*mask);
  }
  return truth;
}

vision::CocoGroundTruth chosen(const vision::CocoGroundTruth& all,
                               std::vector<std::int64_t> image_ids) {
  std::ranges::sort(image_ids);
  const auto twice = std::ranges::adjacent_find(image_ids);
  if (twice != image_ids.end())
    refuse_precision(fmt::format("image {} came twice; give each once", *twice));
  vision::CocoGroundTruth truth = empty_truth(image_ids);
  for (std::size_t i = 0; i < image_ids.size(); ++i) {
    const std::int32_t at = all.image_index(image_ids[i]);
    if (at < 0) refuse_precision(fmt::format("the truth has no image {}", image_ids[i]));
    truth.image_sizes[i] = all.image_sizes[static_cast<std::size_t>(at)];
  }
  truth.has_masks = all.has_masks;
  truth.category_ids = all.category_ids;
  truth.category_names = all.category_names;
  for (std::size_t k = 0; k < all.category_ids.size(); ++k) {
    for (auto i = static_cast<std::size_t>(all.category_begin[k]);
         i < static_cast<std::size_t>(all.category_begin[k + 1]); ++i) {
      const std::int32_t image =
          truth.image_index(all.image_ids[static_cast<std::size_t>(all.images[i])]);
      if (image >= 0) add_annotation(all, i, image, truth);
    }
    truth.category_begin.push_back(std::ssize(truth.ids));
  }
  return truth;
}

}  // namespace trireme::metrics
