#include "trireme/evaluate/coco/detections.h"

#include <cmath>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/files.h"
#include "trireme/evaluate/coco/items.h"
#include "trireme/evaluate/coco/polygon.h"

namespace trireme::evaluate {
namespace {

using internal::Item;

constexpr std::int64_t kColumns = 7;

/// Reads one after the other; the first says what areas are.
class DetectionReader {
 public:
  DetectionReader(CocoKind kind, const CocoGroundTruth& truth) : truth_(truth) {
    detections_.has_masks = kind == CocoKind::kMask;
  }

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
    add_shape(item, box, truth_.image_sizes[image]);
  }

  CocoDetections take() { return std::move(detections_); }

 private:
  [[noreturn]] static void unknown(const Item& item, const std::string& what, const char* name) {
    item.fail("the annotations have no " + what + " " + std::to_string(item.integer(name)));
  }

  void add_shape(const Item& item, const std::optional<Box>& box, ImageSize size) {
    std::optional<Rle> mask;
    if (detections_.has_masks || !has_boxes_) mask = item.mask("segmentation", size);
    if (!mask && !has_boxes_) item.fail("has no \"bbox\" and no \"segmentation\"");
    if (!mask && detections_.has_masks) mask = from_box(size, *box);
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
std::int64_t id_of(double number) {
  constexpr double kLargest = 0x1p53;
  return std::abs(number) <= kLargest ? static_cast<std::int64_t>(number) : -1;
}

void add_row(const double* row, std::int64_t i, const CocoGroundTruth& truth,
             CocoDetections& detections) {
  for (std::int64_t column = 0; column < kColumns; ++column) {
    if (!std::isfinite(row[column])) {
      fail_row(i, "expected finite numbers, got " + std::to_string(row[column]) + " in column " +
                      std::to_string(column));
    }
  }
  const std::int32_t image = truth.image_index(id_of(row[0]));
  const std::int32_t category = truth.category_index(id_of(row[6]));
  if (image < 0) fail_row(i, "the annotations have no image " + std::to_string(row[0]));
  if (category < 0) fail_row(i, "the annotations have no category " + std::to_string(row[6]));
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
  CocoDetections detections;
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
    if (masks[i].size != truth.image_sizes[detections.images[i]]) {
      fail_row(i, "its mask has not the size of its image");
    }
    detections.masks.add(masks[i]);
  }
  return detections;
}

}  // namespace trireme::evaluate
