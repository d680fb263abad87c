#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packs/vision/coco/mask_list.h"
#include "packs/vision/coco/rle.h"

namespace trireme::vision {

/// What detections are compared by.
enum class CocoKind : std::uint8_t { kBox, kMask };

/// The annotations of a COCO file as flat arrays, made once for many evaluations. Immutable.
///
/// As pycocotools has it: annotations of images or categories that the file does not list are left
/// out; `ignore` means nothing, only `iscrowd` does (0 where it is missing); ranges of area go by
/// the annotation's own `area`, also for masks.
struct CocoGroundTruth {
  std::vector<std::int64_t> image_ids;     ///< Ascending, each once.
  std::vector<ImageSize> image_sizes;      ///< [0, 0] where the file does not say and nothing asks.
  std::vector<std::int64_t> category_ids;  ///< Ascending, each once.
  std::vector<std::string> category_names;

  // One element for each annotation, by category, then by image, then as in the file.
  std::vector<std::int64_t> category_begin;  ///< Where each category starts; the number at the end.
  std::vector<std::int32_t> images;          ///< Positions in image_ids.
  std::vector<std::int64_t> ids;
  std::vector<Box> boxes;
  std::vector<double> areas;
  std::vector<std::uint8_t> is_crowd;
  MaskList masks;  ///< Of all annotations, or of none where it was read for boxes.
  bool has_masks = false;

  std::int64_t num_images() const { return std::ssize(image_ids); }
  std::int64_t num_categories() const { return std::ssize(category_ids); }

  /// An id's position; -1 where it is unknown.
  std::int32_t image_index(std::int64_t id) const;
  std::int32_t category_index(std::int64_t id) const;
};

/// kind     kBox: annotations need `bbox`, `segmentation` is not read. kMask: both kinds can be
///          evaluated; annotations need `segmentation`, and a missing `bbox` is the mask's.
/// origin   what is parsed (a path), for messages.
/// Errors   kCorruptData, naming the item, where the text is no such file, two annotations have one
///          id, or a mask is malformed or not of its image's size.
CocoGroundTruth parse_ground_truth(std::string_view text, CocoKind kind, std::string_view origin);
CocoGroundTruth read_ground_truth(const std::filesystem::path& file, CocoKind kind);

}  // namespace trireme::vision
