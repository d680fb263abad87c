#pragma once

#include <filesystem>
#include <string>

#include "packs/vision/data/boxed_source.h"
#include "packs/vision/models/ssd.h"

namespace trireme::recipes::ssd {

/// COCO's average precision of what a model finds on all images of a source, by vision::evaluate_coco: the twelve
/// lines, AP of each category, and what is found on the first image.
///
/// net       is in eval mode while it is used.
/// results   file for all that is found, as COCO's evaluations read it (`trireme-evaluate coco`, pycocotools); none: empty.
/// Errors    those of vision::read_ground_truth, source.read and write_file_atomically.
/// Cost      a forward of each image, 8 at a time.
std::string average_precision(vision::Ssd& net, const vision::BoxedImageSource& source,
                              const std::filesystem::path& results);

}  // namespace trireme::recipes::ssd
