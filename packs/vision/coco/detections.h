#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "packs/vision/coco/ground_truth.h"

namespace trireme::vision {

/// What a model found, as flat arrays in the order it was given. Immutable once made.
///
/// Its positions are those of the ground truth that it was read with. As pycocotools has it, ranges
/// of area go by the boxes' areas where the first detection has a box, else by the masks'.
struct CocoDetections {
  std::int64_t num_images = 0;  ///< Of that ground truth, as num_categories.
  std::int64_t num_categories = 0;
  std::vector<std::int32_t> images;
  std::vector<std::int32_t> categories;
  std::vector<double> scores;
  std::vector<Box> boxes;
  std::vector<double> areas;
  MaskList masks;  ///< Of all, or of none where they were read for boxes.
  bool has_masks = false;

  std::int64_t size() const { return std::ssize(scores); }
};

/// A results file: a list of objects with `image_id`, `category_id`, `score`, and `bbox` or
/// `segmentation` or both. For kMask a detection without a mask has that of its box; for kBox one
/// without a box has that around its mask.
///
/// Errors   kCorruptData, naming the item, where the text is no such file, an image or category is
///          unknown (pycocotools leaves detections of an unknown category out without a word), or a
///          mask is malformed or not of its image's size.
CocoDetections parse_detections(std::string_view text, CocoKind kind, const CocoGroundTruth& truth,
                                std::string_view origin);
CocoDetections read_detections(const std::filesystem::path& file, CocoKind kind,
                               const CocoGroundTruth& truth);

/// Boxes from numbers.
///
/// rows     [n][7]: image id, x, y, width, height, score, category id.
/// Errors   kInvalidArgument, naming the row, where their number is not a multiple of 7, one is not
///          finite, an id is not whole or beyond 2^53, or an image or category is unknown.
CocoDetections make_detections(std::span<const double> rows, const CocoGroundTruth& truth);

/// The same with masks, one for each row. Areas are the boxes'.
///
/// Errors   also where there are more or fewer masks, or one is not of its image's size.
CocoDetections make_detections(std::span<const double> rows, std::span<const Rle> masks,
                               const CocoGroundTruth& truth);

}  // namespace trireme::vision
