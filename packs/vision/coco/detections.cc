#include "packs/vision/coco/detections.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "packs/vision/coco/items.h"
#include "packs/vision/coco/polygon.h"
#include "trireme/base/files.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using internal::Item;

constexpr std::int64_t kColumns = 7;

CocoDetections detections_of(const CocoGroundTruth& truth, bool has_masks = false) {
  return {.num_images = truth.num_images(),
          .num_categories = truth.num_categories(),
          .has_masks = has_masks};
}

/// Reads one after the other; the first says what areas are.
class DetectionReader {
 public:
  DetectionReader(CocoKind kind, const CocoGroundTruth& truth)
      : truth_(truth), detections_(detections_of(truth, kind == CocoKind::kMask)) {}

  void add(const Item& item) {
    const std::int32_t image = truth_.image_index(item.integer("image_id"));
    const std::int32_t category = truth_.category_index(item.integer("category_id"));
    if (image < 0) unknown(item, "image", "image_id");
    if (category < 0) unknown(item, "category", "category_id");
    const std::optional<Box> box = item.box("bbox");
    if (detections_.size() == 0) has_boxes_ = box.has_value();
    if (has_boxes_ && !box) item.fail("has no \"bbox\", which the first detection has");
    detections_.images.push_back(image);
    detections_.categories.push_back(category);
    detections_.scores.push_back(item.number("score"));
    add_shape(item, box, image);
  }

  CocoDetections take() { return std::move(detections_); }

 private:
  [[noreturn]] static void unknown(const Item& item, const std::string& what, const char* name) {
    item.fail("the annotations have no " + what + " " + std::to_string(item.integer(name)));
  }

  void add_shape(const Item& item, const std::optional<Box>& box, std::int32_t image) {
    std::optional<Rle> mask;
    if (detections_.has_masks || !has_boxes_) {
      const internal::Image of{truth_.image_ids[image], truth_.image_sizes[image]};
      mask = item.mask("segmentation", of);
      if (!mask && detections_.has_masks && has_boxes_) mask = item.mask_of_box(*box, of);
    }
    if (!mask && !has_boxes_) item.fail("has no \"bbox\" and no \"segmentation\"");
    detections_.boxes.push_back(box ? *box : bounding_box(*mask));
    detections_.areas.push_back(has_boxes_ ? box->width * box->height
                                           : static_cast<double>(area(*mask)));
    if (detections_.has_masks) detections_.masks.add(*mask);
  }

  const CocoGroundTruth& truth_;
  CocoDetections detections_;
  bool has_boxes_ = false;
};

[[noreturn]] void fail_row(std::int64_t row, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "detection " + std::to_string(row) + ": " + problem);
}

/// A whole number that was stored as another.
///
/// what   "image" or "category".
std::int64_t id_of(double number, std::int64_t row, const std::string& what) {
  constexpr double kLargest = 0x1p53;  // Beyond it neighbours look alike.
  if (std::abs(number) > kLargest || number != std::trunc(number)) {
    fail_row(row, fmt::format("expected a whole {} id within 2^53, got {}", what, number));
  }
  return static_cast<std::int64_t>(number);
}

void add_row(const double* row, std::int64_t i, const CocoGroundTruth& truth,
             CocoDetections& detections) {
  for (std::int64_t column = 0; column < kColumns; ++column) {
    if (!std::isfinite(row[column])) {
      fail_row(i, "expected finite numbers, got " + std::to_string(row[column]) + " in column " +
                      std::to_string(column));
    }
  }
  const std::int64_t image_id = id_of(row[0], i, "image");
  const std::int64_t category_id = id_of(row[6], i, "category");
  const std::int32_t image = truth.image_index(image_id);
  const std::int32_t category = truth.category_index(category_id);
  if (image < 0) fail_row(i, "the annotations have no image " + std::to_string(image_id));
  if (category < 0) fail_row(i, "the annotations have no category " + std::to_string(category_id));
  detections.images.push_back(image);
  detections.categories.push_back(category);
  detections.scores.push_back(row[5]);
  detections.boxes.push_back({row[1], row[2], row[3], row[4]});
  detections.areas.push_back(row[3] * row[4]);
}

}  // namespace

CocoDetections parse_detections(std::string_view text, CocoKind kind, const CocoGroundTruth& truth,
                                std::string_view origin) {
  DetectionReader reader(kind, truth);
  internal::for_each_item(text, origin, [&](const Item& item) { reader.add(item); });
  return reader.take();
}

CocoDetections read_detections(const std::filesystem::path& file, CocoKind kind,
                               const CocoGroundTruth& truth) {
  return parse_detections(read_file(file), kind, truth, file.string());
}

CocoDetections make_detections(std::span<const double> rows, const CocoGroundTruth& truth) {
  if (std::ssize(rows) % kColumns != 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "expected detections of 7 numbers each, got " + std::to_string(rows.size()));
  }
  CocoDetections detections = detections_of(truth);
  for (std::int64_t i = 0; i < std::ssize(rows) / kColumns; ++i) {
    add_row(rows.data() + i * kColumns, i, truth, detections);
  }
  return detections;
}

CocoDetections make_detections(std::span<const double> rows, std::span<const Rle> masks,
                               const CocoGroundTruth& truth) {
  CocoDetections detections = make_detections(rows, truth);
  if (std::ssize(masks) != detections.size()) {
    throw Error(ErrorKind::kInvalidArgument, "expected " + std::to_string(detections.size()) +
                                                 " masks, one for each detection, got " +
                                                 std::to_string(masks.size()));
  }
  detections.has_masks = true;
  for (std::int64_t i = 0; i < detections.size(); ++i) {
    const std::int32_t image = detections.images[i];
    if (const ImageSize size = truth.image_sizes[image]; masks[i].size != size) {
      fail_row(i, "expected a mask of the size of image " + std::to_string(truth.image_ids[image]) +
                      ", " + to_text(size) + ", got " + to_text(masks[i].size));
    }
    detections.masks.add(masks[i]);
  }
  return detections;
}

}  // namespace trireme::vision
