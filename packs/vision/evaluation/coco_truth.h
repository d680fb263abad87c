#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "packs/vision/coco/ground_truth.h"

namespace trireme::metrics {

/// What is there, of an evaluation whose outputs say it.
struct TrueObject {
  std::int64_t category = 0;
  std::int64_t image = 0;
  vision::Box box;
  std::optional<vision::Rle> mask;  ///< Of all, or of none.
};

/// Of images 0 to num_images - 1, all of that size. Areas are those of the masks, or else of the boxes.
vision::CocoGroundTruth truth_of(std::vector<TrueObject> objects, std::int64_t num_images,
                                 vision::ImageSize size);

/// Of all images those that came.
///
/// Errors   kInvalidArgument where one came twice, or is not there.
vision::CocoGroundTruth chosen(const vision::CocoGroundTruth& all,
                               std::vector<std::int64_t> image_ids);

/// Throws kInvalidArgument: the metric's name, and what is wrong.
[[noreturn]] void refuse_precision(const std::string& what);

}  // namespace trireme::metrics
